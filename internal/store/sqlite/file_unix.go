//go:build unix

package sqlite

import (
	"fmt"
	"os"
	"syscall"
)

// fileOf names a file on its disk.
func fileOf(info os.FileInfo) string {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%x:%x", stat.Dev, stat.Ino)
	}
	return ""
}
