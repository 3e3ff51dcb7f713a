// Package api is the HTTP interface to Headroom, /api/v1: what the commands do, for
// programs. Its operations, their types, errors and examples make up a description
// in OpenAPI 3.1, which it serves.
//
// It decides nothing: package control does what is asked for, with what the process
// has open, and its errors become problem answers of RFC 9457 with the text that the
// commands print.
//
// There is no log-in. What keeps web pages of others from using the interface
// through a user's browser is in guard.go, and in that of package web.
package api

import (
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"headroom/internal/control"
)

// Path is the root of the interface.
const Path = "/api/v1"

const (
	// timeout bounds how long an operation may take.
	timeout = 10 * time.Second
	// maxBody is the largest body of a request: a failure filter with 1,000 ids.
	maxBody = 64 << 10
)

// Options configures an [API]. Control and Log are required.
type Options struct {
	Control *control.Control
	Version string
	Log     *zap.Logger
}

// An API is the interface's handler. Make it with [New].
type API struct {
	control *control.Control
	log     *zap.Logger
	mux     *http.ServeMux
	huma    huma.API
	handler http.Handler
}

// New returns the interface with all of its operations.
func New(o Options) *API {
	types := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	for t, stand := range described {
		types.RegisterTypeAlias(t, stand)
	}
	a := &API{control: o.Control, log: o.Log.Named("api"), mux: http.NewServeMux()}
	a.huma = humago.NewWithPrefix(a.mux, Path, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Headroom", Version: "1",
				Description: "Backfills of mailboxes, their messages, and the quota that they share with people. Version of the server: " + o.Version + ".",
			},
			Servers:    []*huma.Server{{URL: Path}},
			Components: &huma.Components{Schemas: types},
		},
		OpenAPIPath:                  "/openapi",
		Formats:                      map[string]huma.Format{"application/json": huma.DefaultJSONFormat, "json": huma.DefaultJSONFormat},
		DefaultFormat:                "application/json",
		RejectUnknownQueryParameters: true,
		Transformers:                 []huma.Transformer{explainInvalid},
	})
	a.addAccounts()
	a.addBackfills()
	a.addSteering()
	a.addMessages()
	a.addAttachments()
	a.addCalendars()
	a.addWatches()
	a.addSchedules()
	a.addEnums()
	a.addEstimate()
	a.addQuota()
	a.handler = a.guard(a.route())
	return a
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// OpenAPI is the description of all operations, for tests.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }
