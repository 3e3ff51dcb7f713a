package app

import (
	"context"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/redis/go-redis/v9"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"headroom/config"
	"headroom/internal/control"
	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
	"headroom/internal/store/sqlite"
	"headroom/quota"
)

// publishing is a publisher with a store and a Redis of its own.
type publishing struct {
	*publisher
	t    *testing.T
	rdb  *redis.Client
	logs *observer.ObservedLogs
}

func newPublishing(t *testing.T) publishing {
	t.Helper()
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	s, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "headroom.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	cfg, err := config.Load(config.Options{Set: []string{"google.projects.p.credentials=", "redis.url=" + server.URL()}})
	if err != nil {
		t.Fatal(err)
	}
	projects, err := control.Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	clients, err := redisconn.New(cfg.Redis.URL, 1)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{Redis: clients.Ledger, Projects: projects, KeyPrefix: cfg.Redis.LedgerPrefix})
	if err != nil {
		t.Fatal(err)
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { rdb.Close(); clients.Close() })
	core, logs := observer.New(zapcore.InfoLevel)
	return publishing{newPublisher(s, ledger, projects, zap.New(core)), t, rdb, logs}
}

// record writes a ceiling to the store alone.
func (p publishing) record(project, api string, ceiling float64) {
	p.t.Helper()
	_, err := p.store.ChangeSettings(p.t.Context(), project, []string{api}, "ann", nil, func(_ sqlite.Setting, next uint32) (*sqlite.SettingChange, error) {
		text, err := json.Marshal(live(next, ceiling))
		return &sqlite.SettingChange{Change: "ceiling", Live: text}, err
	})
	if err != nil {
		p.t.Fatal(err)
	}
}

func live(revision uint32, ceiling float64) quota.Live {
	return quota.Live{Revision: revision, Changes: []quota.Change{{Lane: quota.Backfill, Key: quota.KeyCeiling, Value: ceiling}}}
}

// holds checks what the ledger goes by.
func (p publishing) holds(api string, want quota.Live) {
	p.t.Helper()
	got, err := p.ledger.Live(p.t.Context(), "p", api)
	if err != nil || !sameLive(got, want) {
		p.t.Errorf("%s goes by %+v, %v, want %+v", api, got, err, want)
	}
}

// logged takes the messages that were logged.
func (p publishing) logged() []string {
	var messages []string
	for _, e := range p.logs.TakeAll() {
		messages = append(messages, e.Message)
	}
	return messages
}

func TestThePublisherBringsWhatRedisLacks(t *testing.T) {
	p, ctx := newPublishing(t), t.Context()
	p.look(ctx)
	if n := p.rdb.DBSize(ctx).Val(); n != 0 {
		t.Errorf("without changes, a look has made %d keys", n)
	}
	p.record("p", "gmail", 0.7)
	p.record("gone", "gmail", 0.7) // no project of the settings any more
	p.record("p", "gmail", 0.6)
	p.look(ctx)
	p.holds("gmail", live(2, 0.6))
	p.holds("calendar", quota.Live{})
	if got := p.logged(); len(got) != 1 || got[0] != "quota settings published" {
		t.Errorf("logged %q, want one line about one project", got)
	}
	p.look(ctx)
	if got := p.logged(); len(got) != 0 {
		t.Errorf("a look that finds nothing to do logs %q", got)
	}
	if err := p.rdb.FlushAll(ctx).Err(); err != nil {
		t.Fatal(err)
	}
	p.look(ctx)
	p.holds("gmail", live(2, 0.6))
}

func TestThePublisherLeavesNewerSettingsAlone(t *testing.T) {
	p, ctx := newPublishing(t), t.Context()
	p.record("p", "gmail", 0.7)
	for i, foreign := range []quota.Live{live(1, 0.3), live(5, 0.4)} {
		if _, err := p.ledger.Publish(ctx, "p", "gmail", foreign); err != nil {
			t.Fatal(err)
		}
		p.look(ctx)
		p.look(ctx)
		p.holds("gmail", foreign)
		if got := p.logged(); len(got) != 1 {
			t.Errorf("case %d: logged %q, want one warning", i, got)
		}
	}
}

func TestThePublisherOutlastsFaults(t *testing.T) {
	p := newPublishing(t)
	p.record("p", "gmail", 2) // as if a newer version allowed it
	p.record("p", "calendar", 0.7)
	p.look(t.Context())
	p.holds("calendar", live(1, 0.7))
	if got := p.logged(); len(got) != 2 {
		t.Errorf("logged %q, want one warning and one line about calendar", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Run(ctx); err != nil {
		t.Errorf("Run = %v, want nil", err)
	}
}
