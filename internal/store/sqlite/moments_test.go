package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/jobs"
)

// shownOnly are moments that decide nothing: they are shown, or Google's.
var shownOnly = map[string]string{
	"accounts.created_at": "shown", "jobs.created_at": "orders, and shown", "jobs.started_at": "shown", "jobs.finished_at": "shown",
	"jobs.lease_until": "the rescue of frozen leases", "jobs.wait_until": "repaired by jobs.updated_at", "jobs.list_before": "a date of mail",
	"failures.first_at": "shown", "failures.last_at": "shown", "messages.deleted_at": "that it is set counts",
	"events.deleted_at": "that it is set counts", "watches.expires_at": "Google's", "watches.renew_at": "repaired by watches.renewed_at",
	"watches.last_push_at": "shown", "channels.expires_at": "Google's", "channels.created_at": "shown",
	"schedule_pauses.paused_at": "shown", "quota_settings.at": "shown",
}

// TestEveryMomentIsRepaired moves every stored moment two days ahead, as a clock
// that was wrong leaves them, and repairs them: none that decides anything stays.
func TestEveryMomentIsRepaired(t *testing.T) {
	path := filepath.Join(t.TempDir(), "headroom.db")
	s := open(t, path)
	ctx := t.Context()
	start(t, s)
	raw := must[*sql.DB](t)(sql.Open("sqlite", path))
	defer raw.Close()
	ahead := time.Now().Add(48 * time.Hour).UnixMilli()
	for _, stmt := range []string{
		"UPDATE jobs SET state = 'waiting', live = TRUE, updated_at = ?1, failing_since = ?1, wait_until = ?1 + 90000",
		"INSERT INTO items (job, id, seq, state, not_before) SELECT num, 'm1', 1, 'pending', ?1 FROM jobs",
		"INSERT OR IGNORE INTO mailboxes (account) SELECT email FROM accounts WHERE ?1 > 0",
		"UPDATE mailboxes SET asked_at = ?1, begun_at = ?1, synced_at = ?1, reconciled_at = ?1, resume_at = ?1",
		`INSERT INTO calendar_lists (account, asked_at, begun_at, done_at, synced_at, resynced_at, resume_at, next_try)
			SELECT email, ?1, ?1, ?1, ?1, ?1, ?1, ?1 FROM accounts`,
		`INSERT INTO calendars (account, id, seen, entry, summary, time_zone, access_role, is_primary, state, synced_at, resynced_at, next_try)
			SELECT account, 'c', 1, '{}', '', '', '', FALSE, 'active', ?1, ?1, ?1 FROM calendar_lists`,
		"INSERT INTO watches (account, kind, calendar, state, renewed_at, renew_at, next_try) SELECT email, 'mail', '', 'active', ?1, ?1, ?1 FROM accounts",
		"INSERT INTO schedule_slots (account, schedule, spec, slot, ran_at) SELECT email, 'mail-sync', '@every 1h', ?1, ?1 FROM accounts",
		"INSERT INTO schedule_pauses (schedule, tenant, account, paused_at, resumed_at) VALUES ('', '', '', 1, ?1)",
	} {
		must[sql.Result](t)(raw.ExecContext(ctx, stmt, ahead))
	}
	for _, name := range moments(t, raw) {
		if inFuture(t, raw, name, ahead) == 0 {
			t.Errorf("%s is not among the moments that this test moves ahead", name)
		}
	}
	before := must[jobs.ScheduleRevision](t)(s.ScheduleRevision(ctx))
	found := must[[]jobs.RepairedMoment](t)(s.RepairMoments(ctx))
	got := map[string]int64{}
	for _, f := range found {
		got[f.What] = f.Count
		if d := f.Furthest.UnixMilli() - ahead; d < 0 || d > 90_000 {
			t.Errorf("%s: furthest %s, want two days ahead", f.What, f.Furthest)
		}
	}
	want := map[string]int64{"job": 2, "item": 1, "mail-sync": 3, "reconciliation": 2, "calendar-sync": 7, "calendar": 3,
		"watch": 2, "schedule-slot": 1, "schedule-run": 1, "schedule-pause": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("repaired moments (-want +got):\n%s", diff)
	}
	if again := must[[]jobs.RepairedMoment](t)(s.RepairMoments(ctx)); len(again) != 0 {
		t.Errorf("a second repair found %+v", again)
	}
	if after := must[jobs.ScheduleRevision](t)(s.ScheduleRevision(ctx)); after.Accounts == before.Accounts {
		t.Error("schedulers are not told to read the slots again")
	}
	var wait, now int64
	if err := raw.QueryRowContext(ctx, "SELECT wait_until, updated_at FROM jobs").Scan(&wait, &now); err != nil {
		t.Fatal(err)
	}
	if wait-now != 90_000 || time.Until(time.UnixMilli(now)).Abs() > time.Minute {
		t.Errorf("the job waits until %d, written at %d, want 90 s from now on", wait, now)
	}
	for _, name := range moments(t, raw) {
		if n := inFuture(t, raw, name, ahead); n > 0 {
			t.Errorf("%s is left in the future in %d rows", name, n)
		}
	}
}

// moments lists the columns of the schema that are moments and decide something: a
// new one is repaired, or stands in shownOnly with the reason.
func moments(t *testing.T, raw *sql.DB) (columns []string) {
	t.Helper()
	rows := must[*sql.Rows](t)(raw.QueryContext(t.Context(), `SELECT m.name, p.name FROM sqlite_master AS m JOIN pragma_table_info(m.name) AS p
		WHERE m.type = 'table' AND m.name NOT LIKE 'goose%' AND p.type = 'BIGINT'`))
	defer rows.Close()
	for rows.Next() {
		var table, column string
		if err := rows.Scan(&table, &column); err != nil {
			t.Fatal(err)
		}
		name, suffix := table+"."+column, column[strings.LastIndexByte(column, '_')+1:]
		if slices.Contains([]string{"at", "until", "try", "before", "since", "slot"}, suffix) && shownOnly[name] == "" {
			columns = append(columns, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return columns
}

// inFuture counts the rows whose moment is about ahead or later.
func inFuture(t *testing.T, raw *sql.DB, name string, ahead int64) (n int) {
	t.Helper()
	table, column, _ := strings.Cut(name, ".")
	err := raw.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table+" WHERE "+column+" >= ?", ahead-time.Hour.Milliseconds()).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
