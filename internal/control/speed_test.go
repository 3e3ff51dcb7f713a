package control

import (
	"math"
	"testing"
	"time"

	"go.uber.org/zap"

	"headroom/config"
	"headroom/internal/control/progress"
)

func TestASpeedIsWhatTheSettingsAllow(t *testing.T) {
	for _, tt := range []struct {
		prices            string
		metadata, allowed float64
	}{
		{"gmail-legacy", 1, 15000 * 0.8 / 5 / 6},
		{"gmail-2026-05", 1, 6000 * 0.8 / 20 / 6},
		{"gmail-2026-10", 1.0 / 3, 6000 * 0.8 / 60 / 6},
	} {
		cfg, err := config.Load(config.Options{Optional: true, Set: []string{"scale=10", "google.projects.main.prices=" + tt.prices}})
		if err != nil {
			t.Fatal(err)
		}
		want := progress.Speed{Metadata: tt.metadata, Allowed: tt.allowed, Window: 6 * time.Second}
		if got := New(Options{Config: cfg, Log: zap.NewNop()}).Speed("main"); math.Abs(got.Metadata-want.Metadata) > 1e-9 || math.Abs(got.Allowed-want.Allowed) > 1e-9 || got.Window != want.Window {
			t.Errorf("with %s Speed = %+v, want %+v", tt.prices, got, want)
		}
	}
}
