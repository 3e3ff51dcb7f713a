// Command headroom backfills mailboxes and calendars from Google without taking the
// quota of interactive calls. There is a file for each group of commands; it turns flags
// into a use case of internal/control and prints the result.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"headroom/internal/term"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// run is main as a function that tests can call. It returns the exit code.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	out, errOut := term.NewOutput(stdout), term.NewOutput(stderr)
	root := newRoot(out)
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetErr(errOut)
	cmd, err := root.ExecuteContextC(ctx)
	code, text := ending(ctx, cmd, err, out.Err())
	if code != exitDone {
		fmt.Fprintln(errOut, "headroom: "+text)
	}
	return code
}
