package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
)

// WriteJSON writes v as one line of JSON, escaped as [EscapeJSON] does.
func WriteJSON(out io.Writer, v any) error {
	var doc bytes.Buffer
	enc := json.NewEncoder(&doc)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print the result: %w", err)
	}
	_, err := Raw(out).Write(EscapeJSON(doc.Bytes()))
	return err
}
