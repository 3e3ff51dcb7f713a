package storetest

import (
	"context"
	"time"

	"headroom/jobs"
)

// Store is the seam between the work and what keeps it: every method by which
// workers, the scheduler and the receiver of pushes use a store, with those that a
// test needs to set a store up and to look at it. The interfaces in these packages
// say what each method promises.
//
// A method that takes a ref is fenced by it: it returns [jobs.ErrStale], and changes
// nothing, unless ref names the slice that holds the job's lease. A store is safe for
// concurrent use, and what it returns belongs to the caller.
type Store interface {
	// Accounts.

	AddAccount(ctx context.Context, a jobs.Account) error
	AssignAccount(ctx context.Context, email string, tenant, class *string) error
	Account(ctx context.Context, email string) (jobs.Account, error)
	NoteMailbox(ctx context.Context, ref jobs.TaskRef, address string) (others []string, err error)

	// Backfills, and what somebody asks of any job.

	StartBackfill(ctx context.Context, email string, filter jobs.Filter) (job jobs.Job, created bool, err error)
	Job(ctx context.Context, id string) (jobs.Job, error)
	LiveJobs(ctx context.Context) ([]jobs.Job, error)
	Pause(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	Resume(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	Cancel(ctx context.Context, id string) (job jobs.Job, changed bool, err error)
	RetryFailed(ctx context.Context, id string, f jobs.FailureFilter) (job jobs.Job, retried int, err error)
	Failures(ctx context.Context, jobID string, f jobs.FailureFilter, afterID string, limit int) ([]jobs.Failure, error)

	// The owner of a job, and its rescue.

	Claim(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error)
	Renew(ctx context.Context, ref jobs.TaskRef, lease time.Duration) (jobs.Job, error)
	EndSlice(ctx context.Context, ref jobs.TaskRef) (jobs.Job, error)
	Park(ctx context.Context, ref jobs.TaskRef, p jobs.Park) (jobs.Job, error)
	Finish(ctx context.Context, ref jobs.TaskRef, f jobs.Finish) (jobs.Job, error)
	TakeOver(ctx context.Context, seen jobs.Job) (job jobs.Job, err error)

	// Admission and the accounting of quota.

	Candidates(ctx context.Context) ([]jobs.Candidate, error)
	SetAdmission(ctx context.Context, id string, from, to jobs.Admission) (job jobs.Job, err error)
	Charge(ctx context.Context, ref jobs.TaskRef, units int64) error

	// Listing.

	SaveProfile(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) error
	AddListed(ctx context.Context, ref jobs.TaskRef, p jobs.Page) (jobs.Job, error)
	RestartListing(ctx context.Context, ref jobs.TaskRef, before time.Time) (jobs.Job, error)
	NextItems(ctx context.Context, ref jobs.TaskRef, afterSeq int64, limit int) ([]jobs.Item, error)
	ThreadItems(ctx context.Context, ref jobs.TaskRef, thread string, limit int) ([]jobs.Item, error)
	NextDue(ctx context.Context, ref jobs.TaskRef) (time.Time, error)
	NextPass(ctx context.Context, ref jobs.TaskRef) (more bool, err error)

	// Messages.

	Commit(ctx context.Context, ref jobs.TaskRef, results []jobs.Result) (jobs.Job, error)
	SaveAttachment(ctx context.Context, ref jobs.TaskRef, message string, a jobs.Attachment) error
	Attachments(ctx context.Context, account, message string) ([]jobs.Attachment, error)
	SaveLabels(ctx context.Context, ref jobs.TaskRef, labels []jobs.Label) error
	Message(ctx context.Context, account, id string) (jobs.Message, error)
	Messages(ctx context.Context, account, afterID string, limit int) ([]jobs.Message, error)
	Trace(ctx context.Context, account, id string) (jobs.Message, error)
	StoredID(ctx context.Context, account string) (string, error)

	// Live sync of a mailbox.

	Cursor(ctx context.Context, email string) (c jobs.Cursor, err error)
	StartSync(ctx context.Context, email string) (job jobs.Job, started bool, err error)
	DueSyncs(ctx context.Context) (accounts []string, err error)
	StartDueSync(ctx context.Context, account string) (job jobs.Job, started bool, err error)
	BeginSync(ctx context.Context, ref jobs.TaskRef) (c jobs.Cursor, err error)
	ApplyHistory(ctx context.Context, ref jobs.TaskRef, page jobs.HistoryPage) (jobs.Job, error)
	EndSync(ctx context.Context, ref jobs.TaskRef) (job jobs.Job, done bool, err error)
	ExpireCursor(ctx context.Context, ref jobs.TaskRef, reason jobs.ReconcileReason) (jobs.Cursor, error)
	BeginSnapshot(ctx context.Context, ref jobs.TaskRef, p jobs.Profile) (jobs.Cursor, error)
	AddSnapshot(ctx context.Context, ref jobs.TaskRef, label string, ids []string, next jobs.Snapshot) (jobs.Snapshot, error)
	MergeSnapshot(ctx context.Context, ref jobs.TaskRef) (c jobs.Cursor, err error)
	FailSnapshot(ctx context.Context, ref jobs.TaskRef, reason string) (jobs.Cursor, error)
	DropSnapshot(ctx context.Context, ref jobs.TaskRef) (done bool, err error)

	// Calendars.

	AskCalendarSync(ctx context.Context, email string, all bool) error
	StartCalendarSync(ctx context.Context, email string) (job jobs.Job, started bool, err error)
	DueCalendarSyncs(ctx context.Context) (accounts []string, err error)
	StartDueCalendarSync(ctx context.Context, account string) (job jobs.Job, started bool, err error)
	BeginCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error)
	ApplyCalendarList(ctx context.Context, ref jobs.TaskRef, page jobs.CalendarListPage) (l jobs.CalendarList, err error)
	ExpireCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	RestartCalendarList(ctx context.Context, ref jobs.TaskRef) (jobs.CalendarList, error)
	RoundCalendars(ctx context.Context, ref jobs.TaskRef) (all []jobs.Calendar, err error)
	ApplyEvents(ctx context.Context, ref jobs.TaskRef, calendar string, page jobs.EventPage) (jobs.Calendar, error)
	ExpireCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	RestartCalendar(ctx context.Context, ref jobs.TaskRef, calendar, reason string) (jobs.Calendar, error)
	MarkCalendar(ctx context.Context, ref jobs.TaskRef, calendar string, state jobs.CalendarState, reason string) (jobs.Calendar, error)
	EndCalendars(ctx context.Context, ref jobs.TaskRef) (l jobs.CalendarList, err error)
	CalendarList(ctx context.Context, email string) (l jobs.CalendarList, err error)
	Calendars(ctx context.Context, email string) ([]jobs.Calendar, error)
	Events(ctx context.Context, email, calendar string, q jobs.EventQuery) ([]jobs.Event, error)

	// Schedules.

	ScheduleRevision(ctx context.Context) (r jobs.ScheduleRevision, err error)
	ScheduleSnapshot(ctx context.Context) (roll jobs.ScheduleSnapshot, err error)
	InitSlots(ctx context.Context, slots []jobs.Slot) error
	ClaimSlots(ctx context.Context, pauses int64, claims []jobs.SlotClaim) ([]jobs.ClaimedSlot, error)
	RunSchedule(ctx context.Context, schedule jobs.Schedule, accounts []string, at time.Time) (asked int, err error)
	PauseSchedules(ctx context.Context, p jobs.SchedulePause) error
	ResumeSchedules(ctx context.Context, p jobs.SchedulePause) error

	// Watches and channels.

	Watch(ctx context.Context, k jobs.WatchKey) (w jobs.Watch, err error)
	WatchDue(ctx context.Context, k jobs.WatchKey) (due bool, err error)
	Renewed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, life, renew time.Duration) error
	RenewalFailed(ctx context.Context, ref jobs.TaskRef, k jobs.WatchKey, what string, wait time.Duration) error
	DueChannels(ctx context.Context, account string) (due []jobs.WatchKey, err error)
	AddChannel(ctx context.Context, ref jobs.TaskRef, c jobs.Channel) error
	ChannelMade(ctx context.Context, ref jobs.TaskRef, c jobs.Channel, life, renew time.Duration) error
	StoppableChannels(ctx context.Context, account string) (all []jobs.Channel, err error)
	DropChannel(ctx context.Context, ref jobs.TaskRef, id string) error
	PruneWatches(ctx context.Context) error
	LapseWatches(ctx context.Context) (lapsed []jobs.WatchKey, err error)
	CountWatches(ctx context.Context) (n map[jobs.WatchKind]map[jobs.WatchState]int, err error)

	// Pushes.

	PushMail(ctx context.Context, email string, historyID uint64) (outcome jobs.PushOutcome, err error)
	Channel(ctx context.Context, id string) (c jobs.Channel, err error)
	PushChannel(ctx context.Context, id, resource string, number uint64, changed bool) (outcome jobs.PushOutcome, err error)
	AddStray(ctx context.Context, c jobs.Channel) error

	// Moments that a wrong clock has written.

	RepairMoments(ctx context.Context) ([]jobs.RepairedMoment, error)
}
