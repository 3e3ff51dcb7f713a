package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"headroom/internal/app"
	"headroom/internal/control/estimate"
	"headroom/jobs"
)

// answer is what the HTTP interface answered.
type answer struct {
	status int
	header http.Header
	body   string
}

// call asks the HTTP interface of a process, with a body if it is not nil.
func (r *site) call(a *app.App, method, path string, body any) answer {
	r.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			r.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(r.t.Context(), method, "http://"+a.Addr().String()+"/api/v1"+path, bytes.NewReader(text))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(b)}
}

// read reads an answer that is to be 200.
func read[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil || a.status != http.StatusOK {
		t.Fatalf("answer = %d %s, %v, want 200", a.status, a.body, err)
	}
	return v
}

func TestAPIEstimatesLikeTheCommand(t *testing.T) {
	r := newSite(t, 120)
	a := r.run(app.RoleWeb)
	wants := func(account string, sample int) answer {
		return r.call(a, http.MethodPost, "/estimates", map[string]any{"account": account, "sample": sample})
	}
	if got := wants("bob@example.com", 0); got.status != http.StatusNotFound {
		t.Errorf("an account that is not there = %+v", got)
	}
	if got := read[estimate.Estimate](t, wants(ann, 2)); got.Messages.Value != 120 || got.Bytes == nil || len(got.Prices) == 0 {
		t.Errorf("estimate = %+v", got)
	}
	if got := wants(ann, 11); got.status != http.StatusUnprocessableEntity {
		t.Errorf("a large sample = %+v", got)
	}
	if got := read[struct{ Items []jobs.Job }](t, r.call(a, http.MethodGet, "/backfills", nil)); len(got.Items) != 0 {
		t.Errorf("an estimate has left %+v", got)
	}
	if got := r.call(a, http.MethodPost, "/accounts", map[string]string{"email": "bob@example.com", "project": "main"}); got.status != http.StatusCreated {
		t.Errorf("add an account = %+v", got)
	}
	if got := wants("bob@example.com", 0); got.status != http.StatusBadGateway {
		t.Errorf("an account that Google does not know = %+v", got)
	}
}
