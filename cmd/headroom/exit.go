package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/spf13/cobra"

	"headroom/internal/control"
	"headroom/internal/term"
)

// The exit codes of every command.
const (
	exitDone        = 0
	exitFailed      = 1   // does not exist, is not possible, or did not succeed
	exitUsage       = 2   // wrong usage or settings
	exitInterrupted = 130 // SIGINT or SIGTERM came before the end
)

// exitCodes is the help about them for commands that have nothing to add.
const exitCodes = "Exit codes: 0 done, 1 failed, 2 wrong usage or settings, 130 interrupted."

// untilStopped marks commands that run until they are interrupted, which is not a
// failure.
var untilStopped = map[string]string{"until-stopped": "true"}

// ending is the exit code of a command and, unless it is exitDone, the line that explains
// it. printed is the error of writing to stdout.
func ending(ctx context.Context, cmd *cobra.Command, err, printed error) (code int, text string) {
	if printed != nil {
		unprinted := fmt.Errorf("the output could not be written: %w", bare(printed))
		if err == nil || errors.Is(err, printed) {
			err = unprinted
		} else {
			err = errors.Join(err, unprinted)
		}
	}
	if err != nil {
		code, text = cmp.Or(exitOf[control.KindOf(err)], exitFailed), oneLine(err)
	}
	stopped := cmd != nil && cmd.Annotations["until-stopped"] != "" && !errors.Is(err, context.Canceled)
	if code == exitFailed && printed == nil && ctx.Err() != nil && !stopped {
		code = exitInterrupted // the interrupt is the cause of any failure
		if errors.Is(err, context.Canceled) {
			text = "interrupted before the end"
		}
	}
	return code, text
}

// exitOf are the exit codes of kinds of errors; all other kinds are exitFailed.
var exitOf = map[control.Kind]int{control.Refused: exitUsage, control.Unknown: exitUsage, control.Settings: exitUsage}

// usage marks an error as one of wrong usage.
func usage(err error) error { return &control.Error{Kind: control.Refused, Err: err} }

func usagef(format string, args ...any) error {
	return control.Errorf(control.Refused, format, args...)
}

// bare is the error of a file without the name of the file: stdout has none.
func bare(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// oneLine makes one line of an error that joins several.
func oneLine(err error) string {
	return term.Clean(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// interrupted reports whether err is only the consequence of an interrupt.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}
