package process

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the system kill the child when its parent dies.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
