package app

import (
	"os"
	"testing"

	"go.uber.org/goleak"
	"go.uber.org/zap"
)

// BinaryDir is the folder of the command that some tests build, once for all of
// them; it is removed at the end.
var BinaryDir string

func TestMain(m *testing.M) {
	RouteRedisLog(zap.NewNop())
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if BinaryDir != "" {
			os.RemoveAll(BinaryDir)
		}
		os.Exit(code)
	}))
}
