package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/lab/localredis"
	"headroom/quota"
	"headroom/quota/price"
)

// decideEnv makes the test binary a process that decides, by the settings file
// that it names.
const decideEnv = "HEADROOM_TEST_DECIDE"

// ruled is the ceiling by which a process decided, from the decision on that ended
// at a moment.
type ruled struct {
	At      time.Time
	Ceiling int64
}

// decide is the main function of such a process: an app that runs as any other,
// whose ledger decides about calls of lane backfill until it is told to stop. It
// prints a line each time that a decision goes by another ceiling than the one
// before.
func decide(file string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cfg, err := config.Load(config.Options{Path: file})
	if err != nil {
		return fail(err)
	}
	a, err := app.New(ctx, cfg, app.Options{Roles: []app.Role{app.RoleWeb}, Log: zap.NewNop()})
	if err != nil {
		return fail(err)
	}
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	// The app is ready when it answers, and then has published what it knows.
	if err := answers(ctx, "http://"+a.Addr().String()+"/healthz"); err != nil {
		return fail(err)
	}
	if err := printCeilings(ctx, a.Ledger(), os.Stdout); err != nil {
		return fail(err)
	}
	if err := <-done; err != nil {
		return fail(err)
	}
	return 0
}

// answers waits until a URL answers.
func answers(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func printCeilings(ctx context.Context, ledger *quota.Ledger, out io.Writer) error {
	caller := quota.Caller{Project: "main", User: "ann@example.com", Lane: quota.Backfill}
	lines := json.NewEncoder(out)
	var last int64
	for ctx.Err() == nil {
		d, err := ledger.Take(ctx, caller, "gmail", 1)
		usage := d.Usage
		denied, ok := errors.AsType[*quota.DeniedError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case ok:
			usage = []quota.Usage{{Limit: denied.Limit, Ceiling: denied.Ceiling}}
		case err != nil:
			return err
		}
		for _, u := range usage {
			if u.Limit == price.UserMinute && u.Ceiling != last {
				last = u.Ceiling
				if err := lines.Encode(ruled{time.Now(), last}); err != nil {
					return err
				}
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Millisecond):
		}
	}
	return nil
}

// startDeciders starts processes that decide. Stop ends them.
func startDeciders(t *testing.T, file string, n int) (lines []chan ruled, stop func()) {
	t.Helper()
	var cmds []*exec.Cmd
	for range n {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), decideEnv+"="+file)
		cmd.Stderr = os.Stderr
		cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		told := make(chan ruled, 100)
		go func() {
			defer close(told)
			for scan := bufio.NewScanner(out); scan.Scan(); {
				var r ruled
				if json.Unmarshal(scan.Bytes(), &r) == nil {
					told <- r
				}
			}
		}()
		lines, cmds = append(lines, told), append(cmds, cmd)
	}
	return lines, func() {
		for _, cmd := range cmds {
			cmd.Cancel()
		}
		for i, cmd := range cmds {
			for r := range lines[i] {
				t.Errorf("process %d later went by %d", i, r.Ceiling)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("process %d: %v", i, err)
			}
		}
	}
}

// next waits for the next ceiling by which a process decides.
func next(t *testing.T, process int, lines <-chan ruled, want int64) time.Time {
	t.Helper()
	select {
	case r, open := <-lines:
		if !open || r.Ceiling != want {
			t.Fatalf("process %d decides by %d, want %d", process, r.Ceiling, want)
		}
		return r.At
	case <-time.After(30 * time.Second):
		t.Fatalf("process %d decided by no other ceiling within 30 s", process)
		return time.Time{}
	}
}

// TestQuotaSetHoldsInEveryProcess: four processes decide all the time about an
// account whose minute is used up. As soon as quota set has returned, each goes by
// the new ceiling, and so they do when they, and a Redis without data, start anew.
func TestQuotaSetHoldsInEveryProcess(t *testing.T) {
	const processes, within = 4, 200 * time.Millisecond
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	s := newSite(t, server.URL())
	text, err := os.ReadFile(s.file)
	if err == nil {
		err = os.WriteFile(s.file, append(text, "scale: 60\n"...), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.headroom("account", "add", "ann@example.com", "--project", "main")

	lines, stop := startDeciders(t, s.file, processes)
	for i := range lines {
		next(t, i, lines[i], 4800)
	}
	for _, row := range []struct {
		args    []string
		ceiling int64
	}{
		{[]string{"main", "backfill.ceiling=0.1", "backfill.pace=0"}, 600},   // below what is used
		{[]string{"main", "backfill.ceiling=0.2"}, 1200},                     // raised, while calls are refused
		{[]string{"ann@example.com", "backfill.ceiling=0.3"}, 1800},          // of the account
		{[]string{"main", "mode=adaptive", "backfill.ceiling=0.1"}, 0},       // the account's own stays
		{[]string{"ann@example.com", "--unset", "backfill.ceiling"}, 600},    // back to the project's
		{[]string{"main", "--unset", "backfill.ceiling"}, 5400},              // and to the mode's
		{[]string{"main", "mode=guaranteed", "backfill.ceiling=0.25"}, 1500}, // stays below
	} {
		if r := s.headroom(append([]string{"quota", "set"}, row.args...)...); r.code != 0 || r.stderr != "" {
			t.Fatalf("quota set %q = %+v", row.args, r)
		}
		returned := time.Now()
		if row.ceiling == 0 {
			continue
		}
		for i := range lines {
			took := next(t, i, lines[i], row.ceiling).Sub(returned)
			t.Logf("%q: process %d after %s", row.args, i, took.Round(time.Millisecond))
			if took > within {
				t.Errorf("process %d went by %q only %s after the command, want at most %s", i, row.args, took, within)
			}
		}
	}
	stop()

	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer rdb.Close()
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	lines, stop = startDeciders(t, s.file, processes)
	for i := range lines {
		next(t, i, lines[i], 1500)
	}
	// A Redis that loses everything while they run.
	if err := rdb.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.headroom("quota", "set", "main", "backfill.ceiling=0.35")
	for i := range lines {
		next(t, i, lines[i], 2100)
	}
	stop()
}
