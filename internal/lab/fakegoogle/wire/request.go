package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// LargestRequest bounds the body of a call that brings no message, in bytes.
const LargestRequest = 1 << 20

// ReadAtMost reads a body that is no larger than that.
func ReadAtMost(r io.Reader, largest int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err == nil && int64(len(body)) > largest {
		err = fmt.Errorf("the body is larger than %d bytes", largest)
	}
	return body, err
}

// DecodeStrict refuses keys that v has not and anything after the value.
func DecodeStrict(body []byte, v any) error {
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("read the JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("read the JSON: something follows the first value")
	}
	return nil
}
