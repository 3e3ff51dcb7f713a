package e2e_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"

	"headroom/internal/redisconn"
)

// binaryDir is the folder of the command that some tests build, once for all of
// them; it is removed at the end.
var binaryDir string

func TestMain(m *testing.M) {
	redisconn.RouteLog(zap.NewNop())
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if binaryDir != "" {
			os.RemoveAll(binaryDir)
		}
		os.Exit(code)
	}))
}
