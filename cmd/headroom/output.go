package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"headroom/internal/term"
)

// printJSON prints v on stdout as one line of JSON, in which nothing moves a
// terminal.
func printJSON(cmd *cobra.Command, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	_, err := rawOut(cmd).Write(term.EscapeJSON(doc.Bytes()))
	return err
}

// rawOut is stdout for what must arrive byte for byte.
func rawOut(cmd *cobra.Command) io.Writer {
	if o, ok := cmd.OutOrStdout().(*term.Output); ok {
		return o.Raw()
	}
	return cmd.OutOrStdout()
}

// rawErr is the same for stderr.
func rawErr(cmd *cobra.Command) io.Writer {
	if o, ok := cmd.ErrOrStderr().(*term.Output); ok {
		return o.Raw()
	}
	return cmd.ErrOrStderr()
}

// unprinted is the error of what was printed so far. It ends what would print on
// and on for nobody.
func unprinted(cmd *cobra.Command) error {
	if o, ok := cmd.OutOrStdout().(*term.Output); ok {
		return o.Err()
	}
	return nil
}

// counted is a number of things: "1 problem", "1,200 problems".
func counted(n int64, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return humanize.Comma(n) + " " + noun
}
