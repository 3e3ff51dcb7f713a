package api_test

import (
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headroom/internal/redisconn"
)

func TestMain(m *testing.M) {
	redisconn.RouteLog(zap.NewNop())
	goleak.VerifyTestMain(m)
}
