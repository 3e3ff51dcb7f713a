package workers

import (
	"context"
	"errors"

	"headroom/jobs"
)

// Live sync is tested with the real store and a fake Google, in internal/app.
var errNoSync = errors.New("there is no live sync in memory")

func (*memStore) BeginSync(context.Context, jobs.TaskRef) (jobs.Cursor, error) {
	return jobs.Cursor{}, errNoSync
}

func (*memStore) ApplyHistory(context.Context, jobs.TaskRef, jobs.HistoryPage) (jobs.Job, error) {
	return jobs.Job{}, errNoSync
}

func (*memStore) EndSync(context.Context, jobs.TaskRef) (jobs.Job, bool, error) {
	return jobs.Job{}, false, errNoSync
}

func (*memStore) ExpireCursor(context.Context, jobs.TaskRef, jobs.ReconcileReason) (jobs.Cursor, error) {
	return jobs.Cursor{}, errNoSync
}

func (*memStore) AddSnapshot(context.Context, jobs.TaskRef, string, []string, jobs.Snapshot) (jobs.Snapshot, error) {
	return jobs.Snapshot{}, errNoSync
}

func (*memStore) BeginSnapshot(context.Context, jobs.TaskRef, jobs.Profile) (jobs.Cursor, error) {
	return jobs.Cursor{}, errNoSync
}

func (*memStore) MergeSnapshot(context.Context, jobs.TaskRef) (jobs.Cursor, error) {
	return jobs.Cursor{}, errNoSync
}

func (*memStore) FailSnapshot(context.Context, jobs.TaskRef, string) (jobs.Cursor, error) {
	return jobs.Cursor{}, errNoSync
}

func (*memStore) DropSnapshot(context.Context, jobs.TaskRef) (bool, error) { return false, errNoSync }

func (*memMailbox) History(context.Context, uint64, string) (jobs.HistoryPage, error) {
	return jobs.HistoryPage{}, errNoSync
}

func (*memMailbox) ListAll(context.Context, string, string) (jobs.Page, error) {
	return jobs.Page{}, errNoSync
}

func (*memMailbox) Labels(context.Context) ([]jobs.Label, error) { return nil, errNoSync }
