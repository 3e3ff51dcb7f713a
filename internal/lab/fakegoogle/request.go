package fakegoogle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// largestRequest bounds the body of a call that brings no message, in bytes.
const largestRequest = 1 << 20

// readAtMost reads a body that is no larger than that.
func readAtMost(r io.Reader, largest int64) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r, largest+1))
	if err == nil && int64(len(body)) > largest {
		err = fmt.Errorf("the body is larger than %d bytes", largest)
	}
	return body, err
}

// decodeStrict refuses keys that v has not and anything after the value.
func decodeStrict(body []byte, v any) error {
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
