package redisconn

import (
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

func TestMain(m *testing.M) {
	RouteLog(zap.NewNop())
	goleak.VerifyTestMain(m)
}
