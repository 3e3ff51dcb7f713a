package api_test

import (
	"net/http/httptest"
	"path/filepath"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest"

	"headroom/config"
	"headroom/internal/api"
	"headroom/internal/control"
	"headroom/internal/lab/localredis"
	"headroom/internal/redisconn"
	"headroom/jobs"
	"headroom/quota"
)

// TestRequestsUseWhatTheProcessHasOpen: the settings of this interface name no store
// and no Redis that could be opened, so that a request that opens one fails.
func TestRequestsUseWhatTheProcessHasOpen(t *testing.T) {
	server, err := localredis.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Stop)
	cfg, err := config.Load(config.Options{Optional: true, Set: []string{
		"store.path=" + t.TempDir() + "/headroom.db", "redis.url=" + server.URL(), "google.projects.main.prices=gmail-2026-05", "google.endpoint=http://127.0.0.1:1",
	}})
	if err != nil {
		t.Fatal(err)
	}
	s, err := control.MakeStore(t.Context(), cfg, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	clients, err := redisconn.New(cfg.Redis.URL, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer clients.Close()
	projects, err := control.Projects(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := quota.NewLedger(quota.Options{Redis: clients.Ledger, Projects: projects, KeyPrefix: cfg.Redis.LedgerPrefix})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Store.Path, cfg.Redis.URL = filepath.Join(t.TempDir(), "none", "headroom.db"), "redis://127.0.0.1:1"
	c := control.New(control.Options{Config: cfg, Log: zaptest.NewLogger(t), Projects: projects, Store: s, Redis: clients, Ledger: ledger})
	web := httptest.NewServer(api.New(api.Options{Control: c, Log: zap.NewNop()}))
	defer web.Close()

	i := &served{t: t, base: web.URL + api.Path}
	ask[jobs.Account](i, 201, "POST", "/accounts", map[string]string{"email": ann, "project": "main"})
	ask[steered](i, 201, "POST", "/backfills", map[string]any{"account": ann})
	set := ask[control.QuotaSet](i, 200, "PUT", "/quota/main/settings", map[string]any{"set": map[string]any{"backfill.ceiling": 0.5}})
	if set.Unpublished != "" || len(set.APIs) != 1 || !set.APIs[0].Changed {
		t.Errorf("set = %+v, want it published", set)
	}
	i.fails(502, "", "POST", "/estimates", map[string]any{"account": ann})
	if err := c.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	if _, err := s.Accounts(t.Context()); err != nil {
		t.Errorf("Close has closed the store of the process: %v", err)
	}
}
