// Package cli has the commands of the laboratory: demo, bench and fake-google. Their root
// command passes them what all commands share.
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

// A Root is what the commands need of the root command. All fields are required.
type Root struct {
	// JSON reports whether results are printed as JSON. It is asked when a command runs.
	JSON func() bool
	// Log returns the logger of the settings.
	Log func(*cobra.Command) (*zap.Logger, error)
	// Usage marks an error as one of usage.
	Usage func(error) error
	// Args checks the number of arguments.
	Args func(cobra.PositionalArgs) cobra.PositionalArgs
	// Progress describes how much of a job is done, and Doing what it does now.
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

// quietLog logs errors only, since these commands show their progress by themselves.
func quietLog(cmd *cobra.Command) (*zap.Logger, error) {
	return app.NewLog(config.Log{Level: "error", Format: "auto"}, cmd.ErrOrStderr())
}

// interrupted reports whether err is only the consequence of an interrupt.
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
	_ = cmd.RegisterFlagCompletionFunc("meter", oneOf(meters)) // it fails for a missing flag
}
