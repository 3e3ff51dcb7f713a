package config_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"headroom/config"
)

func TestAPasswordIsNeverPrinted(t *testing.T) {
	places := map[string]func(*config.Config) *config.URL{
		"redis.url":             func(c *config.Config) *config.URL { return &c.Redis.URL },
		"google.endpoint":       func(c *config.Config) *config.URL { return &c.Google.Endpoint },
		"push.calendar.address": func(c *config.Config) *config.URL { return &c.Push.Calendar.Address },
		"push.gmail.issuer":     func(c *config.Config) *config.URL { return &c.Push.Gmail.Issuer },
		"push.gmail.audience":   func(c *config.Config) *config.URL { return &c.Push.Gmail.Audience },
	}
	for _, u := range []config.URL{
		"redis://:hunter2@127.0.0.1:6379/0",
		"redis://ann:hunter2@127.0.0.1:6379/0",
		"redis://127.0.0.1:6379/0?password=hunter2",
		"redis://:hunter2%@127.0.0.1",
		"https://ann:hunter2@127.0.0.1/",
		"https://hunter2@127.0.0.1/push/calendar",
		"https://127.0.0.1/push/calendar?token=hunter2&n=1",
		"https://127.0.0.1/?X-Api-Key=hunter2#hunter2",
		"https://127.0.0.1/%zz?token=hunter2",
		"ann:hunter2@127.0.0.1",
	} {
		for key, place := range places {
			cfg := config.Default()
			*place(&cfg) = u
			asJSON, err := json.Marshal(cfg)
			if err != nil {
				t.Fatal(err)
			}
			asYAML, err := yaml.Marshal(cfg)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{
				fmt.Sprint(u), fmt.Sprintf("%q %#v %+v", u, u, cfg), string(asJSON), string(asYAML), fmt.Sprint(cfg.Validate()),
			} {
				if strings.Contains(text, "hunter2") {
					t.Errorf("the password of %s: %q shows in %s", key, u.Reveal(), text)
				}
			}
		}
		if !strings.Contains(u.Reveal(), "hunter2") || !strings.Contains(u.String(), "127.0.0.1") {
			t.Errorf("Reveal = %q, String = %q, want the whole and the address", u.Reveal(), u)
		}
	}
	if got := config.URL("redis://ann@127.0.0.1/0").String(); got != "redis://ann@127.0.0.1/0" {
		t.Errorf("a Redis user is shown as %s", got)
	}
}

func TestWhatIsShownCanBeLoadedAgain(t *testing.T) {
	cfg, err := config.Load(config.Options{Path: write(t, full)})
	if err != nil {
		t.Fatal(err)
	}
	text, err := yaml.Marshal(cfg)
	if err != nil {
		t.Fatal(err)
	}
	again, err := config.Load(config.Options{Path: write(t, string(text))})
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if again.Worker != cfg.Worker {
		t.Errorf("worker = %+v, want %+v", again.Worker, cfg.Worker)
	}
}

func TestBytesPrintWithTheirLargestExactUnit(t *testing.T) {
	for b, want := range map[config.Bytes]string{0: "0B", 1000: "1000B", 1 << 10: "1KiB", 3 << 20: "3MiB", 1 << 30: "1GiB"} {
		if got := b.String(); got != want {
			t.Errorf("%d bytes print as %s, want %s", int64(b), got, want)
		}
	}
}

// TestEveryKeyIsDocumented holds docs/configuration.md to the types.
func TestEveryKeyIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	for line := range strings.Lines(string(page)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 {
			documented[strings.Trim(cells[1], " `")] = true
		}
	}
	for _, key := range config.Keys() {
		if !documented[key] {
			t.Errorf("docs/configuration.md has no row for %s", key)
		}
		if !strings.Contains(key, "<") && !strings.Contains(string(page), config.EnvName(key)) {
			t.Errorf("docs/configuration.md does not name %s", config.EnvName(key))
		}
	}
}
