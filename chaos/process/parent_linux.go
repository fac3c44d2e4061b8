package process

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the system kill a child whose parent ended without doing so.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
