package process

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestProgram: a program's address is its first line, and one that ends without a line is an error.
func TestProgram(t *testing.T) {
	t.Parallel()
	p, err := StartProgram(t.Context(), t, "talker", "/bin/sh", "-c",
		"echo warning >&2; echo 127.0.0.1:4711; echo more; exec sleep 60")
	suite.Must(t, err)
	if p.Address != "127.0.0.1:4711" || !p.Running() || p.PID() == 0 {
		t.Errorf("serves at %q, process %d", p.Address, p.PID())
	}
	if (&Process{}).PID() != 0 {
		t.Error("a process that was never started has an ID")
	}
	_, err = StartProgram(t.Context(), t, "mute", "/bin/sh", "-c", "echo no luck >&2")
	if err == nil || !strings.Contains(err.Error(), "no luck") {
		t.Errorf("a program without an address: %v", err)
	}
}
