//go:build envoy

package envoy

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// rlqsAssignable is what Envoys can have of the limit of rlqs-limits.yaml in its one region.
const rlqsAssignable = rlqsRate - 100

// TestRLQSSteps: one Envoy that begins has all that can be assigned with its second report, one to
// which the demand moves with the third report of the one before, and two that want all of it have
// it together by then.
func TestRLQSSteps(t *testing.T) {
	limits, err := os.ReadFile("rlqs-limits.yaml")
	suite.Must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t), Limits: string(limits),
		Regions: []process.RegionConfig{{Name: "here"}}})
	suite.Must(t, err)
	a := startApp(t)
	var envoys []*proxy
	for range 2 {
		envoys = append(envoys, startEnvoy(t, "rlqs.yaml", a, addresses(fleet.Regions[0])))
	}
	w := watch(t, a)
	const length, rest = 20 * time.Second, 15 * time.Second // after the rest assignments have ended
	for _, step := range []struct {
		what  string
		wants map[int]int // requests a second at each Envoy
		rest  time.Duration
	}{
		{"one begins", map[int]int{0: 1500}, 0},
		{"the demand moves", map[int]int{1: 1500}, rest},
		{"two begin", map[int]int{0: 900, 1: 900}, 0},
	} {
		begun := time.Now()
		before := w.app.count("")
		var work sync.WaitGroup
		for i, rate := range step.wants {
			work.Go(func() { envoys[i].flood(t, i, rate, length) })
		}
		work.Wait()
		all := w.seconds(begun, length)
		fmt.Printf("RLQS steps, %s: %v a second\n", step.what, all)
		last := 0
		for _, n := range all[len(all)-5:] {
			last += n
		}
		if most := 5 * rlqsAssignable; last < most/2 {
			t.Errorf("%s: %d of %d in the last 5 s, %d in all", step.what, last, most, w.app.count("")-before)
		}
		time.Sleep(step.rest)
	}
	w.judge(t)
}

// flood has clients ask an Envoy so often a second.
func (p *proxy) flood(t *testing.T, i, rate int, d time.Duration) {
	const clients = 8
	begun := time.Now()
	var work sync.WaitGroup
	for j := range clients {
		c := p.client(t, fmt.Sprintf("127.0.%d.%d", 16+i, 1+j))
		work.Go(func() {
			every := time.NewTicker(clients * time.Second / time.Duration(rate))
			defer every.Stop()
			for time.Since(begun) < d {
				<-every.C
				if _, err := c.ask(t.Context(), "GET", "/", "X-Account", "acme"); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
}

// seconds returns what the app counted in each second since a moment.
func (w *tally) seconds(since time.Time, d time.Duration) (all []int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	count := func(at time.Time) (n int) {
		for _, p := range w.points {
			if p.at.Before(at) {
				n = p.count
			}
		}
		return n
	}
	for at := since; at.Before(since.Add(d)); at = at.Add(time.Second) {
		all = append(all, count(at.Add(time.Second))-count(at))
	}
	return all
}
