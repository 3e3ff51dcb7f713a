package config_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"headroom/config"
)

func TestPush(t *testing.T) {
	got, err := config.Load(config.Options{Path: write(t, `
push:
  gmail:
    topic: projects/p/topics/mail
    subscription: projects/p/subscriptions/mail
    service_account: push@p.iam.gserviceaccount.com
  calendar: {address: "https://headroom.example.com/push/calendar"}
`), Environ: []string{"HEADROOM_PUSH_GMAIL_AUDIENCE=https://headroom.example.com/push/gmail"}})
	if err != nil {
		t.Fatal(err)
	}
	want := config.Push{
		Gmail: config.PushGmail{Topic: "projects/p/topics/mail", Subscription: "projects/p/subscriptions/mail",
			ServiceAccount: "push@p.iam.gserviceaccount.com", Audience: "https://headroom.example.com/push/gmail"},
		Calendar: config.PushCalendar{Address: "https://headroom.example.com/push/calendar"},
	}
	if diff := cmp.Diff(want, got.Push); diff != "" {
		t.Errorf("push (-want +got):\n%s", diff)
	}
	if !got.Push.Gmail.On() || !got.Push.Calendar.On() || config.Default().Push != (config.Push{}) {
		t.Error("push is off, or on by default")
	}
}

func TestWrongPushIsNamed(t *testing.T) {
	for text, want := range map[string][]string{
		`push: {gmail: {topic: mail, audience: a}}`: {
			"push.gmail.subscription: is missing: name the topic's push subscription, or leave out push.gmail.topic, push.gmail.audience",
			"push.gmail.service_account: is missing: name the service account whose tokens the subscription sends, or leave out push.gmail.topic, push.gmail.audience",
			`push.gmail.topic: must be projects/PROJECT/topics/TOPIC, not "mail"`,
		},
		`push: {gmail: {issuer: accounts.google.com}, calendar: {address: "http://headroom.example.com/"}}`: {
			`push.gmail.issuer: must be an http or https URL, not "accounts.google.com"`,
			`push.calendar.address: must be an https URL that Google reaches (http only with google.endpoint), not "http://headroom.example.com/"`,
		},
	} {
		_, err := config.Load(config.Options{Path: write(t, text)})
		invalid, ok := errors.AsType[*config.InvalidError](err)
		if !ok {
			t.Fatalf("Load = %v, want an InvalidError", err)
		}
		if diff := cmp.Diff(want, unplaced(invalid)); diff != "" {
			t.Errorf("problems of %s (-want +got):\n%s", text, diff)
		}
	}
	fake := "google: {endpoint: \"http://127.0.0.1:9000\"}\npush: {calendar: {address: \"http://127.0.0.1:8080/push/calendar\"}}"
	if _, err := config.Load(config.Options{Path: write(t, fake)}); err != nil {
		t.Errorf("with a fake Google: %v", err)
	}
}
