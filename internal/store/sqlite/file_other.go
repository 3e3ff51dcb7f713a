//go:build !unix

package sqlite

import "os"

func fileOf(os.FileInfo) string { return "" }
