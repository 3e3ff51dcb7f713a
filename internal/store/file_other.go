//go:build !unix

package store

import "os"

func fileOf(os.FileInfo) string { return "" }
