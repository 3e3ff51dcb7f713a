package config_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
	"headroom/jobs"
)

func TestSchedulesOfAllOfATenantAndOfAnAccount(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, `
sync: {interval: 90s}
schedules:
  calendar-sync:
    spec: 0 * * * *
    zone: Europe/Berlin
    tenants:
      example.com: {spread: 10m, catch_up: none}
    accounts:
      ann@example.com: {spec: 30 2 * * *, zone: America/New_York, spread: 0s}
  mail-sync:
    pause: true
    tenants:
      example.com: {pause: false}
    accounts:
      ann@example.com: {spec: none}
`), Set: []string{"schedules.mail-sync.tenants.mail.example.org.spec=@hourly", "schedules.mail-sync.accounts.bob@mail.example.org.pause=false",
		"schedules.reconciliation.spec=@monthly"}})
	if err != nil {
		t.Fatal(err)
	}
	minutes, none := 10*time.Minute, time.Duration(0)
	for _, tc := range []struct {
		name, tenant, account string
		want                  config.TenantSchedule
	}{
		{"mail-sync", "other", "x@example.net", config.TenantSchedule{Spec: "@every 1m30s", Zone: "UTC", CatchUp: "one", Pause: new(true)}},
		{"calendar-sync", "other", "x@example.net", config.TenantSchedule{Spec: "0 * * * *", Zone: "Europe/Berlin", CatchUp: "one", Pause: new(false)}},
		{"calendar-sync", "example.com", "bob@example.com", config.TenantSchedule{Spec: "0 * * * *", Zone: "Europe/Berlin", Spread: &minutes, CatchUp: "none", Pause: new(false)}},
		{"calendar-sync", "example.com", "ann@example.com", config.TenantSchedule{Spec: "30 2 * * *", Zone: "America/New_York", Spread: &none, CatchUp: "none", Pause: new(false)}},
		{"mail-sync", "example.com", "ann@example.com", config.TenantSchedule{Spec: "none", Zone: "UTC", CatchUp: "one", Pause: new(false)}},
		{"mail-sync", "mail.example.org", "bob@mail.example.org", config.TenantSchedule{Spec: "@hourly", Zone: "UTC", CatchUp: "one", Pause: new(false)}},
		{"reconciliation", "other", "x@example.net", config.TenantSchedule{Spec: "@monthly", Zone: "UTC", CatchUp: "one", Pause: new(false)}},
		{"watch-renewal", "other", "x@example.net", config.TenantSchedule{Spec: "none", Zone: "UTC", CatchUp: "one", Pause: new(false)}},
	} {
		if diff := cmp.Diff(tc.want, got.Schedule(jobs.Schedule(tc.name), tc.tenant, tc.account)); diff != "" {
			t.Errorf("%s of %s (-want +got):\n%s", tc.name, tc.account, diff)
		}
	}
}

func TestNoSyncIntervalIsNoSchedule(t *testing.T) {
	got, err := config.Load(config.Options{Set: []string{"sync.interval=0s"}})
	if spec := got.Schedule("mail-sync", "", "").Spec; err != nil || spec != config.NoSchedule {
		t.Errorf("%v, the mail-sync is %q, want none", err, spec)
	}
}

func TestWatchesAreRenewedWhereGooglePushes(t *testing.T) {
	got, err := config.Load(config.Options{Set: []string{"push.calendar.address=https://headroom.example.com/push/calendar"}})
	if spec := got.Schedule("watch-renewal", "", "").Spec; err != nil || spec != "@every 1h" {
		t.Errorf("%v, the watch-renewal is %q, want every hour", err, spec)
	}
}

func TestWrongSchedulesAreNamed(t *testing.T) {
	_, err := config.Load(config.Options{Path: write(t, `
schedules:
  mail-sync: {spec: "* * *", zone: Mars, accounts: {ann: {zone: Local}}}
  calendar-sync: {spec: "@every 10ms", spread: -1s, catch_up: two}
  reconciliation: {spec: "0 0 30 2 *", tenants: {"a b": {spec: "TZ=UTC 0 0 * * *"}}}
  tea: {spec: "0 17 * * *"}
`)})
	var invalid *config.InvalidError
	if !errors.As(err, &invalid) {
		t.Fatalf("Load = %v, want an InvalidError", err)
	}
	form := `must be a cron specification such as "0 * * * *", "@every 5m" or "none" `
	want := []string{
		"schedules.calendar-sync.spec: " + form + "(every 10ms is too often; a second is the least)",
		"schedules.calendar-sync.spread: must not be negative (0: everybody at once)",
		`schedules.calendar-sync.catch_up: must be one of one, none, not "two"`,
		"schedules.mail-sync.spec: " + form + "(expected exactly 5 fields, found 3: [* * *])",
		`schedules.mail-sync.zone: must be a time zone such as Europe/Berlin, not "Mars"`,
		"schedules.mail-sync.accounts.ann: must be the address of an account, in lower case",
		`schedules.mail-sync.accounts.ann.zone: must be a time zone such as Europe/Berlin, not "Local"`,
		"schedules.reconciliation.spec: " + form + "(it never comes)",
		"schedules.reconciliation.tenants.a b: the name must have 1 to 128 characters that can be seen, no space, comma or =",
		"schedules.reconciliation.tenants.a b.spec: " + form + "(a zone has a key of its own)",
		"schedules.tea: must be one of mail-sync, calendar-sync, watch-renewal, reconciliation",
	}
	if diff := cmp.Diff(want, unplaced(invalid)); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
