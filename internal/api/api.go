// Package api is the HTTP interface to Headroom, /api/v1: what the commands do, for
// programs. Its operations, their types, errors and examples make up a description
// in OpenAPI 3.1, which it serves.
//
// It decides nothing: a [Backend] does what is asked for, and its errors become
// problem answers of RFC 9457 with the text that the commands print.
//
// There is no log-in. What keeps web pages of others from using the interface
// through somebody's browser stands in guard.go, and in that of package web.
package api

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"go.uber.org/zap"

	"headroom/internal/agenda"
	"headroom/jobs"
)

// Path is where the interface stands.
const Path = "/api/v1"

const (
	// timeout bounds how long an operation may take.
	timeout = 10 * time.Second
	// maxBody is the largest body of a request: a failure filter with 1,000 ids.
	maxBody = 64 << 10
)

// A Backend does what is asked for. Its errors are those of package jobs, or ones
// of its own that Status knows; their text says the cause and what to do.
type Backend interface {
	Accounts(ctx context.Context) ([]jobs.Account, error)
	Account(ctx context.Context, email string) (jobs.Account, error)
	AddAccount(ctx context.Context, email, project string, as Assignment) (jobs.Account, error)
	AssignAccount(ctx context.Context, email string, as Assignment) (jobs.Account, error)

	Backfills(ctx context.Context, f jobs.JobFilter, afterID string, limit int) ([]jobs.Job, error)
	Backfill(ctx context.Context, id string) (jobs.Job, error)
	Start(ctx context.Context, email string, f jobs.Filter) (job jobs.Job, created bool, err error)
	Pause(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	Resume(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	Cancel(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	RetryFailed(ctx context.Context, id string, f jobs.FailureFilter) (job jobs.Job, retried int, err error)
	Failures(ctx context.Context, id string, f jobs.FailureFilter, afterID string, limit int) ([]jobs.Failure, error)
	Sync(ctx context.Context, email string) (job jobs.Job, started bool, err error)

	Messages(ctx context.Context, email string, f jobs.MessageFilter, afterID string, limit int) ([]jobs.Message, error)
	Message(ctx context.Context, email, id string) (jobs.Message, error)
	OpenMessage(ctx context.Context, email, id string) (jobs.Message, io.ReadCloser, error)
	Attachments(ctx context.Context, email, id string) ([]jobs.Attachment, error)
	OpenAttachment(ctx context.Context, email, id, part string) (jobs.Attachment, io.ReadCloser, error)

	Calendars(ctx context.Context, email string) ([]jobs.CountedCalendar, error)
	Events(ctx context.Context, email, calendar string, q jobs.EventQuery) ([]jobs.Event, error)
	Occurrences(ctx context.Context, email, calendar string, span agenda.Span, cursor string, limit int) (agenda.Page, error)

	Watches(ctx context.Context, account string, after jobs.WatchKey, limit int) ([]jobs.Watch, error)
	Schedules(ctx context.Context, scope jobs.ScheduleScope) ([]jobs.ScheduleLine, error)
	NextRuns(ctx context.Context, schedule jobs.Schedule, account string, n int) ([]jobs.ScheduledRun, error)
	RunSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.ScheduleRun, error)
	PauseSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error)
	ResumeSchedule(ctx context.Context, schedule jobs.Schedule, scope jobs.ScheduleScope) (jobs.SchedulePausing, error)

	// Status is the HTTP status for an error of the backend's own, or 0.
	Status(err error) int
}

// Options configures an [API]. Backend and Log are required.
type Options struct {
	Backend Backend
	Version string
	Log     *zap.Logger
}

// An API is the interface's handler. Make it with [New].
type API struct {
	opts    Options
	mux     *http.ServeMux
	huma    huma.API
	handler http.Handler
}

// New returns the interface with all operations on accounts, backfills and
// messages. Others are added with [Add] before it serves.
func New(o Options) *API {
	o.Log = o.Log.Named("api")
	a := &API{opts: o, mux: http.NewServeMux()}
	a.huma = humago.NewWithPrefix(a.mux, Path, huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{
				Title: "Headroom", Version: "1",
				Description: "Backfills of mailboxes, their messages, and the quota that they share with people. Version of the server: " + o.Version + ".",
			},
			Servers: []*huma.Server{{URL: Path}},
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
	a.describe()
	a.handler = a.guard(a.route())
	return a
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.handler.ServeHTTP(w, r) }

// OpenAPI is the description of all operations, for tests.
func (a *API) OpenAPI() *huma.OpenAPI { return a.huma.OpenAPI() }
