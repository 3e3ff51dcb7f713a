package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
)

// printJSON prints v on stdout as one line of JSON.
func printJSON(cmd *cobra.Command, v any) error {
	enc := json.NewEncoder(cmd.OutOrStdout())
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	return nil
}
