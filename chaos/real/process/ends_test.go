//go:build !race

package process

import (
	"errors"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// shell is a process that runs a shell script.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	p := &Process{name: "sh", dir: t.TempDir()}
	t.Cleanup(p.Kill)
	suite.Must(t, p.start("/bin/sh", "-c", script))
	return p
}

// TestEnds: ends that were asked for are told apart from others.
func TestEnds(t *testing.T) {
	suite.Must(t, shell(t, "sleep 60").End())
	gone := shell(t, "echo out of memory; exit 1")
	<-gone.Exited()
	if err := gone.End(); !errors.Is(err, ErrNotRunning) || !strings.Contains(err.Error(),
		"it had ended by itself\nout of memory") {
		t.Errorf("killing what had ended: %v", err)
	}
	for code, want := range map[string]string{"0": "",
		"3": "sh was asked to end and did so with exit status 3"} {
		p := shell(t, "trap 'exit "+code+"' TERM; echo ready; while :; do sleep 0.02; done")
		suite.Eventually(t, "the trap is set", func() bool { return p.Output() != "" })
		if err := p.Terminate(t.Context()); (err == nil) != (want == "") || err != nil &&
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("asked to end with %s: %v", code, err)
		}
	}
}
