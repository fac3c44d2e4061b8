//go:build !linux

package process

import "os/exec"

// dieWithParent does nothing where the system cannot be told to.
func dieWithParent(*exec.Cmd) {}
