package app_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/app"
)

func TestLogsAreJSONWhereNobodyLooks(t *testing.T) {
	var out bytes.Buffer
	log, err := app.NewLog(config.Log{Level: "warn", Format: "auto"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Info("too quiet")
	log.Warn("loud enough", zap.Duration("wait", 1500*time.Millisecond))
	var entry map[string]any
	if err := json.Unmarshal(out.Bytes(), &entry); err != nil {
		t.Fatalf("%v in %q, want one line of JSON", err, out.String())
	}
	if entry["msg"] != "loud enough" || entry["level"] != "warn" || entry["wait"] != 1.5 {
		t.Errorf("entry = %v", entry)
	}
}

func TestLogsForPeople(t *testing.T) {
	var out bytes.Buffer
	log, err := app.NewLog(config.Log{Level: "debug", Format: "console"}, &out)
	if err != nil {
		t.Fatal(err)
	}
	log.Named("redis").Debug("hello", zap.String("key", "value"))
	if got := out.String(); !strings.Contains(got, "DEBUG\tredis\thello\t{\"key\": \"value\"}") {
		t.Errorf("log = %q", got)
	}
	if _, err := app.NewLog(config.Log{Level: "loud"}, &out); err == nil || !strings.Contains(err.Error(), "log.level") {
		t.Errorf("NewLog = %v, want an error that names log.level", err)
	}
}
