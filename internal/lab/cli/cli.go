// Package cli has the commands of the laboratory: demo, bench and fake-google. They are
// made for a root command, which tells them what it has in common for all commands.
package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
	"headroom/internal/control/progress"
	"headroom/jobs"
)

// A Root is what the commands take of the root command. All fields are required.
type Root struct {
	// JSON reports whether results are printed as JSON. It is asked when a command runs.
	JSON func() bool
	// Log returns the logger of the settings.
	Log func(*cobra.Command) (*zap.Logger, error)
	// Usage marks an error as one of usage.
	Usage func(error) error
	// Args checks the number of arguments.
	Args func(cobra.PositionalArgs) cobra.PositionalArgs
	// Progress tells how much of a job is done, and Doing what it is about.
	Progress, Doing func(jobs.Job, *progress.Speed) string
	// UntilStopped annotates a command that runs until it is interrupted.
	UntilStopped map[string]string
}

// Commands returns the commands of the laboratory.
func Commands(r Root) []*cobra.Command {
	return []*cobra.Command{newBench(r), newDemo(r), newFakeGoogle(r)}
}

// tellEvery is the time between two lines of progress.
const tellEvery = 2 * time.Second

func (r Root) usagef(format string, args ...any) error { return r.Usage(fmt.Errorf(format, args...)) }

// quietLog logs errors only: what a command shows by itself is what there is to see.
func quietLog(cmd *cobra.Command) (*zap.Logger, error) {
	return app.NewLog(config.Log{Level: "error", Format: "auto"}, cmd.ErrOrStderr())
}

// interrupted reports whether err only says that the user wanted to stop.
func interrupted(ctx context.Context, err error) bool {
	return ctx.Err() != nil && errors.Is(err, context.Canceled)
}

// oneOf completes a word with one of some.
func oneOf(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		var fit []cobra.Completion
		for _, word := range words {
			if strings.HasPrefix(word, prefix) {
				fit = append(fit, word)
			}
		}
		return fit, cobra.ShellCompDirectiveNoFileComp
	}
}

// offerMeters completes --meter.
func offerMeters(cmd *cobra.Command, meters []string) {
	_ = cmd.RegisterFlagCompletionFunc("meter", oneOf(meters)) // it fails for a flag that is not there
}
