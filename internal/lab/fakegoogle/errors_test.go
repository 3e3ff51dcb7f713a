package fakegoogle_test

import (
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/api/googleapi"
)

// wantError checks an error through the official client and in its raw body.
func wantError(t *testing.T, err error, code int, message, reason, status string) {
	t.Helper()
	failure, ok := errors.AsType[*googleapi.Error](err)
	if !ok {
		t.Errorf("error = %v, want %d %s", err, code, reason)
		return
	}
	if failure.Code != code || failure.Message != message || len(failure.Errors) != 1 || failure.Errors[0].Reason != reason {
		t.Errorf("error = %d %q %v, want %d %q %s", failure.Code, failure.Message, failure.Errors, code, message, reason)
	}
	if got := envelope(t, failure.Body); got.Status != status || got.Code != code {
		t.Errorf("body has code %d and status %q, want %d and %q", got.Code, got.Status, code, status)
	}
}

type errorBody struct {
	Code    int
	Message string
	Status  string
	Errors  []struct{ Message, Domain, Reason, Location string }
	Details []struct {
		Type     string `json:"@type"`
		Reason   string
		Domain   string
		Metadata map[string]string
	}
}

func envelope(t *testing.T, body string) errorBody {
	t.Helper()
	var e struct{ Error errorBody }
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("error body %q: %v", body, err)
	}
	return e.Error
}
