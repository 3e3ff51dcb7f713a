package config

import (
	"net/url"
	"regexp"
	"strings"
)

// Push sets how Google reports changes as they happen. Without it, changes are found
// when the next sync is due.
type Push struct {
	Gmail    PushGmail    `yaml:"gmail"`
	Calendar PushCalendar `yaml:"calendar"`
}

// PushGmail is the topic of Cloud Pub/Sub to which Gmail publishes changes, and its
// push subscription, which delivers them. Either all fields but Issuer are set, or none.
type PushGmail struct {
	Topic          string `yaml:"topic"`           // projects/PROJECT/topics/TOPIC
	Subscription   string `yaml:"subscription"`    // projects/PROJECT/subscriptions/SUBSCRIPTION
	ServiceAccount string `yaml:"service_account"` // address; the subscription sends its tokens
	Audience       URL    `yaml:"audience"`        // of these tokens
	Issuer         URL    `yaml:"issuer"`          // of these tokens; "": Google, or what google.endpoint names
}

// PushCalendar is where Calendar sends notices of changes.
type PushCalendar struct {
	Address URL `yaml:"address"` // URL of /push/calendar as Google reaches it; "": none
}

// On reports whether Headroom watches mailboxes.
func (g PushGmail) On() bool { return g.Topic != "" }

// On reports whether Headroom watches calendars.
func (c PushCalendar) On() bool { return c.Address != "" }

var (
	topicForm        = regexp.MustCompile(`^projects/[^/\s]+/topics/[^/\s]+$`)
	subscriptionForm = regexp.MustCompile(`^projects/[^/\s]+/subscriptions/[^/\s]+$`)
)

func (c Push) validate(p *problems, google Google) {
	g := c.Gmail
	settings := []struct{ key, value, why string }{
		{"push.gmail.topic", g.Topic, "the topic that Gmail publishes to"},
		{"push.gmail.subscription", g.Subscription, "the topic's push subscription"},
		{"push.gmail.service_account", g.ServiceAccount, "the service account whose tokens the subscription sends"},
		{"push.gmail.audience", g.Audience.Reveal(), "the audience that the subscription puts into its tokens"},
	}
	var set []string
	for _, s := range settings {
		if s.value != "" {
			set = append(set, s.key)
		}
	}
	for _, s := range settings {
		p.check(s.value != "" || len(set) == 0, s.key, "is missing: name %s, or leave out %s", s.why, strings.Join(set, ", "))
	}
	p.check(g.Topic == "" || topicForm.MatchString(g.Topic), "push.gmail.topic", "must be projects/PROJECT/topics/TOPIC, not %q", URL(g.Topic))
	p.check(g.Subscription == "" || subscriptionForm.MatchString(g.Subscription), "push.gmail.subscription",
		"must be projects/PROJECT/subscriptions/SUBSCRIPTION, not %q", URL(g.Subscription))
	p.check(g.ServiceAccount == "" || strings.Count(g.ServiceAccount, "@") == 1, "push.gmail.service_account",
		"must be an address such as push@my-project.iam.gserviceaccount.com, not %q", g.ServiceAccount)
	p.check(g.Issuer == "" || isURL(g.Issuer, true), "push.gmail.issuer", "must be an http or https URL, not %q", g.Issuer)
	p.check(c.Calendar.Address == "" || isURL(c.Calendar.Address, google.Endpoint != ""), "push.calendar.address",
		"must be an https URL that Google reaches (http only with google.endpoint), not %q", c.Calendar.Address)
}

func isURL(s URL, plain bool) bool {
	u, err := url.Parse(s.Reveal())
	return err == nil && u.Host != "" && (u.Scheme == "https" || plain && u.Scheme == "http")
}
