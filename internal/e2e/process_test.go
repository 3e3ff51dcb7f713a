package e2e_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
)

// binary builds the command once for all tests.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "headroom-test-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "headroom")
	out, err := exec.Command("go", "build", "-o", path, "headroom/cmd/headroom").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

// worker starts a worker as an operating system's process of its own.
func (r *site) worker(path string) *exec.Cmd {
	r.t.Helper()
	return r.process(path, "worker")
}

// process starts a role as an operating system's process of its own.
func (r *site) process(path, role string, flags ...string) *exec.Cmd {
	r.t.Helper()
	cmd := exec.Command(path, append([]string{"run", "--roles", role, "--config", r.config}, flags...)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, testWriter{r.t}
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { // where the test ended early
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd
}
