//go:build !race

package process

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestFaultsOfStarvedNodes: nodes get a tenth of a CPU, or cannot open files and connections any
// more. They exceed the limit by no more than the bound printed for calls of the Redis that time
// out. They recover by themselves when they get what they need, and do not fill their logs.
func TestFaultsOfStarvedNodes(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	f := raise(t, Config{Limits: faultLimits, Regions: []RegionConfig{{Name: "us", Nodes: 2},
		{Name: "eu"}}})
	bounds := printed(t, faultLimits, "quick", "--nodes", "2")
	var slow sync.WaitGroup
	var fed chan struct{}
	var before string
	for _, c := range []fault{
		{name: "a tenth of a CPU", lasts: 3 * time.Second,
			breaks: func(_ *testing.T, r *Region) {
				fed = make(chan struct{})
				for _, n := range r.Nodes {
					slow.Go(func() { throttle(t, &n.Process, fed) })
				}
			},
			mends: func(*testing.T, *Region) { close(fed); slow.Wait() }},
		{name: "no file descriptors", lasts: 3 * time.Second,
			breaks: func(t *testing.T, r *Region) {
				before = r.Nodes[0].Output()
				for _, n := range r.Nodes {
					mayOpen(t, &n.Process, 0)
				}
				for range 20 { // they wait to be accepted
					c, err := net.Dial("tcp", r.Nodes[0].HTTP)
					must(t, err)
					t.Cleanup(func() { _ = c.Close() })
				}
			},
			mends: func(t *testing.T, r *Region) {
				for _, n := range r.Nodes {
					mayOpen(t, &n.Process, 1024)
				}
				said := strings.TrimPrefix(r.Nodes[0].Output(), before)
				if lines := strings.Count(said, "too many open files"); lines == 0 || lines > 40 {
					t.Errorf("%d times in the log of one node that no more files can be opened, want 1 to 40:\n%s", lines, said)
				}
			}},
	} {
		t.Run(c.name, func(t *testing.T) { c.plays(t, f, bounds) })
	}
}

// throttle lets a process run for 10 ms of each 100, until fed is closed.
func throttle(t *testing.T, p *Process, fed <-chan struct{}) {
	for tick := time.NewTicker(100 * time.Millisecond); ; {
		if err := p.Pause(); err != nil {
			t.Error(err)
		}
		select {
		case <-fed:
			tick.Stop()
			if err := p.Resume(); err != nil {
				t.Error(err)
			}
			return
		case <-tick.C:
		}
		if err := p.Resume(); err != nil {
			t.Error(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// mayOpen sets how many files and connections a process may have open; it keeps those that it has.
func mayOpen(t *testing.T, p *Process, files uint64) {
	t.Helper()
	pid := p.cmd.Process.Pid
	var limit unix.Rlimit
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit))
	limit.Cur = files
	must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil))
}
