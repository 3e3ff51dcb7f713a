// Command headroom backfills mailboxes and calendars from Google without ever
// taking the quota that people are waiting on. There is one file for each
// subcommand; it turns flags into options and prints what comes back.
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

// run is main without the process around it, so that tests can call it. It
// returns the exit code.
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
