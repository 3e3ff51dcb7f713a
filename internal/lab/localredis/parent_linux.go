package localredis

import "syscall"

// dieWithParent makes the kernel end the server when this process dies.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
