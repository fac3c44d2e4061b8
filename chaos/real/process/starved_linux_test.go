//go:build !race

package process

import (
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// faultLimits are shared by two regions half and half. Half of it may be lent, so that the part
// that nodes admit without their Redis is large enough to matter.
const faultLimits = `
version: 1
regions:
  us: {weight: 50}
  eu: {weight: 50}
limits:
  - {name: quick, domain: api, key: [quick], algorithm: fixed_window, limit: 200, window: 2s, lending_limit: 0.5}
`

// fault breaks something in a region and repairs it.
type fault struct {
	name   string
	breaks func(*testing.T, *Region)
	lasts  time.Duration
	mends  func(*testing.T, *Region)
}

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
					suite.Must(t, err)
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
	suite.Must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &limit))
	limit.Cur = files
	suite.Must(t, unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil))
}

// plays makes the fault happen, several times if the run is to be long. The excess must never be
// more than the printed bound of what nodes admit without their Redis.
func (c fault) plays(t *testing.T, f *Fleet, bounds bounds) {
	t.Helper()
	var most, excess, unanswered int64
	var longest, back time.Duration
	for range timesOr(1) {
		b, until := c.happens(t, f)
		certain := b.certain()
		most = max(most, b.alone(bounds))
		if v := b.judge.Verdict(); certain > most || v.Misplaced+v.Duplicates > 0 {
			t.Errorf("%v; %d above the limit for certain, printed %d\n%v", v, certain, most, v.Violations)
		}
		excess, back = max(excess, certain), max(back, until)
		unanswered += b.unanswered.Load()
		longest = max(longest, time.Duration(b.longest.Load()))
	}
	t.Logf("%-44s excess %2d (with %d unanswered), printed %2d; longest answer %v; back after %v",
		c.name,
		excess, unanswered, most, longest.Round(time.Millisecond), back.Round(10*time.Millisecond))
}

// happens makes the fault happen in us while all nodes are asked for more than the limit. It
// returns how long after the repair us admitted with its Redis again.
func (c fault) happens(t *testing.T, f *Fleet) (*bucket, time.Duration) {
	us := f.Region("us")
	b := newBucket(t, "quick", time.Now().Format(time.RFC3339Nano), fixed(200, 2*time.Second))
	var stops []func()
	for _, n := range us.Nodes {
		_, stop := b.offer(f, 100, n)
		stops = append(stops, stop)
	}
	_, stop := b.offer(f, 100, f.Region("eu").Nodes...)
	stops = append(stops, stop)
	admits := func(a oracle.Answer) bool { return a.Region == "us" && a.Outcome == oracle.Admitted }
	b.await(t, "admitted by the Redis of us", admits)
	// What is admitted without Redis shows only when what may be admitted with it is used up.
	b.await(t, "denied by the Redis of us",
		func(a oracle.Answer) bool {
			return a.Region == "us" && a.Outcome == oracle.Denied && a.Share > 0
		})
	c.breaks(t, us)
	pause(t, c.lasts)
	c.mends(t, us)
	mended := time.Now()
	b.await(t, "admitted by the Redis of us again", admits)
	back := time.Since(mended)
	pause(t, b.limit.Window) // effects of the fault show by the next window
	for _, stop := range stops {
		stop()
	}
	return b, back
}
