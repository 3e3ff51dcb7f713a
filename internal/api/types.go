package api

import (
	"encoding/json"
	"reflect"
	"time"

	"headroom/internal/agenda"
	"headroom/internal/control"
	"headroom/jobs"
)

// The types below replace in the OpenAPI document those that they embed, which are sent
// and received as they are. They repeat the fields that need a description, by the
// same names. A test holds them to have no others.

// Filter is a [jobs.Filter].
type Filter struct {
	jobs.Filter
	After     time.Time   `json:"after,omitzero" doc:"Received at this moment or later, to the second."`
	Before    time.Time   `json:"before,omitzero" doc:"Received before this moment."`
	Labels    []string    `json:"labels,omitempty" doc:"Ids of labels, all of which a message must have."`
	Query     string      `json:"query,omitempty" doc:"In the syntax of Gmail's search."`
	SpamTrash bool        `json:"spam_trash,omitempty" doc:"Spam and trash too."`
	MaxSize   int64       `json:"max_size,omitempty" doc:"Of the raw message, in bytes; 0: any."`
	First     int64       `json:"first,omitempty" doc:"Only the newest so many; 0: all."`
	Format    jobs.Format `json:"format,omitempty" doc:"What of a message is fetched, and in which order; raw if left out."`
}

// FailureFilter is a [jobs.FailureFilter].
type FailureFilter struct {
	jobs.FailureFilter
	Reason  string   `json:"reason,omitempty" doc:"Exactly as listed."`
	IDs     []string `json:"ids,omitempty" doc:"At most 1000."`
	GivenUp bool     `json:"given_up,omitempty" doc:"Only those that are not tried again by themselves."`
}

// Job is a [jobs.Job].
type Job struct {
	jobs.Job
	Wanted     jobs.State `json:"wanted,omitempty" doc:"The state that the job is being brought to."`
	Epoch      int64      `json:"epoch" doc:"Rises when the job changes owner."`
	WaitingFor string     `json:"waiting_for,omitempty" doc:"The limit, or the fault, that the job waits for."`
	Refusals   int        `json:"refusals" doc:"In a row, without progress between them."`
	Failures   int        `json:"failures" doc:"In a row, without progress between them."`
	Requeued   int64      `json:"requeued" doc:"Times the job went back to the queue for quota."`
}

// Progress is a [jobs.Progress].
type Progress struct {
	jobs.Progress
	Expected    int64 `json:"expected" doc:"What the mailbox promises; an estimate until the listing is complete."`
	Stored      int64 `json:"stored" doc:"Fetched and stored by this run."`
	Known       int64 `json:"known" doc:"Stored before, skipped without a call."`
	Gone        int64 `json:"gone" doc:"Deleted at Google between list and get."`
	Skipped     int64 `json:"skipped" doc:"Seen to be outside the filter."`
	Failed      int64 `json:"failed" doc:"Given up; see the failures."`
	ParseFailed int64 `json:"parse_failed" doc:"Stored, but no mail reader understands them; part of stored."`
	Bytes       int64 `json:"bytes" doc:"Of raw messages stored."`
}

// Message is a [jobs.Message].
type Message struct {
	jobs.Message
	Size   int64  `json:"size" doc:"Of the raw message, in bytes."`
	SHA256 string `json:"sha256" doc:"Of the raw message; empty while its body is not stored."`
}

// Event is a [jobs.Event].
type Event struct {
	jobs.Event
	Status        string          `json:"status" doc:"As Google last reported it."`
	Series        string          `json:"series,omitempty" doc:"The id of the series that this is an occurrence of."`
	OriginalStart string          `json:"original_start,omitempty" doc:"When it would have begun: a date, or a moment."`
	JSON          json.RawMessage `json:"event" doc:"As Google sent it."`
	DeletedAt     time.Time       `json:"deleted_at,omitzero" doc:"Since when it is known to be deleted."`
}

// Occurrence is an [agenda.Occurrence].
type Occurrence struct {
	agenda.Occurrence
	ID       string      `json:"id" doc:"As Google names it."`
	Series   string      `json:"series,omitempty" doc:"The id of the event that repeats."`
	End      agenda.When `json:"end" doc:"Exclusive."`
	Original agenda.When `json:"original,omitzero" doc:"When it would have begun, if it differs from its series."`
}

// Watch is a [jobs.Watch].
type Watch struct {
	jobs.Watch
	Calendar string    `json:"calendar,omitempty" doc:"The id, of a watch of kind calendar."`
	Channel  string    `json:"channel,omitempty" doc:"The id of the channel that is in use; Gmail has none."`
	RenewAt  time.Time `json:"renew_at,omitzero" doc:"When it is to be renewed."`
	Failures int       `json:"failures" doc:"Attempts to renew it that failed, in a row."`
	NextTry  time.Time `json:"next_try,omitzero" doc:"No attempt is made before."`
}

// ScheduleScope is a [jobs.ScheduleScope].
type ScheduleScope struct {
	Account string `json:"account,omitempty" maxLength:"254" doc:"Only this account."`
	Tenant  string `json:"tenant,omitempty" maxLength:"128" doc:"Only the accounts of this tenant."`
}

// ScheduleLine is a [control.ScheduleLine].
type ScheduleLine struct {
	control.ScheduleLine
	SettingsOf string         `json:"settings_of" doc:"Whose settings hold: defaults, all, tenant NAME or account ADDRESS."`
	Next       time.Time      `json:"next,omitzero" doc:"When the next run of any of them is due."`
	LastSlot   time.Time      `json:"last_slot,omitzero" doc:"The newest slot that has run."`
	LastRun    time.Time      `json:"last_run,omitzero" doc:"When the newest run began."`
	Results    map[string]int `json:"results" doc:"How many accounts' last run came to what: the state of the work that it asked for, nothing if there was none to do, never if there was no run."`
	LastError  string         `json:"last_error,omitempty" doc:"Of one of the accounts whose work failed or is blocked."`
	LagSeconds float64        `json:"lag_seconds" doc:"How long the oldest due run has been due; 0 when none is."`
	CatchUps   int64          `json:"catch_ups" doc:"Of the runs, those that made up for missed ones."`
	Missed     int64          `json:"missed" doc:"Slots that never had a run."`
	Paused     int            `json:"paused" doc:"How many of the accounts it is paused for."`
	PausedBy   []string       `json:"paused_by,omitempty" doc:"What pauses it: settings, all accounts, tenant NAME or an account."`
}

// ScheduledRun is a [control.ScheduledRun].
type ScheduledRun struct {
	control.ScheduledRun
	Slot   time.Time `json:"slot" doc:"The moment that the specification names, in its zone."`
	Due    time.Time `json:"due" doc:"When the account's run is due; of no account in particular, the first's."`
	Spread float64   `json:"spread_seconds" doc:"Over how long after the slot the accounts' runs are spread."`
	Paused bool      `json:"paused" doc:"It does not run unless it is resumed before."`
}

// ScheduleRun is a [control.ScheduleRun].
type ScheduleRun struct {
	ScheduleScope
	control.ScheduleRun
	Accounts int `json:"accounts" doc:"For how many accounts it was run."`
	Asked    int `json:"asked" doc:"For how many of them there was anything to ask for. It begins within seconds or, where it is under way, once more after that."`
}

// SchedulePausing is a [control.SchedulePausing].
type SchedulePausing struct {
	ScheduleScope
	control.SchedulePausing
	Changed bool     `json:"changed" doc:"False when it was so already."`
	By      []string `json:"paused_by,omitempty" doc:"Whatever else pauses it for any of these accounts."`
}

// described maps types to those that replace them in the document.
var described = map[reflect.Type]reflect.Type{
	reflect.TypeFor[jobs.Filter]():             reflect.TypeFor[Filter](),
	reflect.TypeFor[jobs.FailureFilter]():      reflect.TypeFor[FailureFilter](),
	reflect.TypeFor[jobs.Job]():                reflect.TypeFor[Job](),
	reflect.TypeFor[jobs.Progress]():           reflect.TypeFor[Progress](),
	reflect.TypeFor[jobs.Message]():            reflect.TypeFor[Message](),
	reflect.TypeFor[jobs.Event]():              reflect.TypeFor[Event](),
	reflect.TypeFor[agenda.Occurrence]():       reflect.TypeFor[Occurrence](),
	reflect.TypeFor[jobs.Watch]():              reflect.TypeFor[Watch](),
	reflect.TypeFor[jobs.ScheduleScope]():      reflect.TypeFor[ScheduleScope](),
	reflect.TypeFor[control.ScheduleLine]():    reflect.TypeFor[ScheduleLine](),
	reflect.TypeFor[control.ScheduledRun]():    reflect.TypeFor[ScheduledRun](),
	reflect.TypeFor[control.ScheduleRun]():     reflect.TypeFor[ScheduleRun](),
	reflect.TypeFor[control.SchedulePausing](): reflect.TypeFor[SchedulePausing](),
}

// addEnums lists the values of states and formats.
func (a *API) addEnums() {
	types := a.huma.OpenAPI().Components.Schemas.Map()
	for _, state := range jobs.States {
		types["Job"].Properties["state"].Enum = append(types["Job"].Properties["state"].Enum, string(state))
	}
	for _, format := range jobs.Formats {
		types["Filter"].Properties["format"].Enum = append(types["Filter"].Properties["format"].Enum, string(format))
	}
}
