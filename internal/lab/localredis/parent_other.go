//go:build !linux

package localredis

import "syscall"

func dieWithParent() *syscall.SysProcAttr { return nil }
