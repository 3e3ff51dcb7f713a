package app

import (
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	RouteRedisLog(zap.NewNop())
	goleak.VerifyTestMain(m)
}
