//go:build !linux

package process

import "os/exec"

// dieWithParent does nothing: this system has no such feature.
func dieWithParent(*exec.Cmd) {}
