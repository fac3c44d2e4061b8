//go:build !race

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// killLimits move rights all the time: nearly all demand is in us, which is entitled to a third.
const killLimits = `
version: 1
regions:
  us: {weight: 1}
  eu: {weight: 1}
  ap: {weight: 1}
limits:
  - {name: brief, domain: api, key: [brief], algorithm: fixed_window, limit: 90, window: 2s}
  - {name: long, domain: api, key: [long], algorithm: fixed_window, limit: 300, window: 10m}
`

// killed is the fleet whose nodes die.
type killed struct {
	*Fleet
	t          *testing.T
	us, eu, ap *Node
	brief      *bucket
	longs      []*bucket
	deaths     int
}

// TestKills has a node die at each point of a transfer, again and again, and two nodes at once.
// Nothing is admitted above the limit, nothing is borrowed that its lender does not remember, and
// rights move again.
func TestKills(t *testing.T) {
	t.Parallel()
	f := &killed{t: t, Fleet: raise(t,
		Config{Limits: killLimits, Settings: []string{"chaos: true"}, // for failpoints
			Regions: []RegionConfig{{Name: "us"}, {Name: "eu"}, {Name: "ap"}}})}
	f.us, f.eu, f.ap = f.Region("us").Nodes[0], f.Region("eu").Nodes[0], f.Region("ap").Nodes[0]
	f.brief = newBucket(t, "brief", "1", fixed(90, 2*time.Second))
	stop := f.demand(f.brief, 80, 4)
	for _, c := range []struct {
		point  string
		victim *Node
	}{
		{"before-debit", f.eu}, {"after-debit", f.eu}, {"after-fsync", f.eu}, {"after-reply", f.eu},
		{"before-credit", f.us}, {"after-credit", f.us},
	} {
		f.run(c.point, func(t *testing.T) { f.dieAt(t, c.point, c.victim, timesOr(2)) })
	}
	f.run("both", func(t *testing.T) { f.dieTogether(t, timesOr(1)) })
	f.run("journal", f.journalKnows)
	stop()
	f.judged(f.brief)
	units := int64(0)
	for _, b := range f.longs {
		f.judged(b)
		units += b.unanswered.Load()
	}
	t.Logf("%d deaths, %d windows of 10m and %d of 2s judged, %d and %d units without an answer",
		f.deaths, len(f.longs), f.brief.judge.Verdict().CellsChecked, units,
		f.brief.unanswered.Load())
}

// run runs a part of the test.
func (f *killed) run(name string, part func(*testing.T)) {
	whole := f.t
	defer func() { f.t, f.brief.t = whole, whole }()
	whole.Run(name, func(t *testing.T) {
		f.t, f.brief.t = t, t
		part(t)
	})
}

// demand offers units a second to us, and others to each of the other regions.
func (f *killed) demand(b *bucket, rate, others int64) (stop func()) {
	_, us := b.offer(f.Fleet, rate, f.us)
	_, eu := b.offer(f.Fleet, others, f.eu)
	_, ap := b.offer(f.Fleet, others, f.ap)
	return func() { us(); eu(); ap() }
}

// long returns a bucket of 10m that was never used, under demand until stop is called. All demand
// is in us, because a region that may use its part within ten minutes lends nothing.
func (f *killed) long() (b *bucket, stop func()) {
	b = newBucket(f.t, "long", fmt.Sprint(len(f.longs)), fixed(300, 10*time.Minute))
	f.longs = append(f.longs, b)
	return b, f.demand(b, 100, 0)
}

// So many deaths share a bucket of 10m: when a bucket is used up, no more of its rights move.
const deathsPerBucket = 3

// dieAt has a node kill itself at a point so many times, and restarts it at once each time.
func (f *killed) dieAt(t *testing.T, point string, victim *Node, deaths int) {
	victim.Kill()
	for left := deaths; left > 0; {
		b, stop := f.long()
		for range min(left, deathsPerBucket) {
			f.die(t, point, 1+left%3, victim)
			left--
		}
		victim.SetEnv()
		must(t, victim.Start(t.Context()))
		must(t, f.Meet(t.Context()))
		stop()
		b.wantNotMore(f.Fleet)
		f.brief.wantNotMore(f.Fleet)
		if left > 0 {
			victim.Kill()
		}
	}
	f.moves(t)
}

// die starts a node and waits until it has reached a point so many times, where it dies. If the
// node ends earlier, because its Redis was slow, die starts it again.
func (f *killed) die(t *testing.T, point string, times int, victim *Node) {
	t.Helper()
	victim.SetEnv(fmt.Sprintf("QUOTAD_FAILPOINT=%s:%d", point, times))
	for range 5 {
		must(t, victim.Launch())
		select {
		case <-victim.Exited():
		case <-time.After(suite.Patience):
			t.Fatalf("%s does not come by %s\n%s", victim.name, point, victim.Output())
		}
		if victim.Killed() {
			f.deaths++
			return
		}
	}
	t.Fatalf("%s does not start\n%s", victim.name, victim.Output())
}

// dieTogether kills lender and borrower at once, and restarts them in either order.
func (f *killed) dieTogether(t *testing.T, times int) {
	for range times {
		for _, order := range [][2]*Node{{f.us, f.eu}, {f.eu, f.us}} {
			b, stop := f.long()
			b.await(t, "admitted on rights that were borrowed", borrowedBy("us"))
			for _, n := range order {
				n.Kill()
				f.deaths++
			}
			for _, n := range order {
				must(t, n.Start(t.Context()))
			}
			must(t, f.Meet(t.Context()))
			f.moves(t)
			stop()
			b.wantNotMore(f.Fleet)
			f.brief.wantNotMore(f.Fleet)
		}
	}
}

// moves checks that rights move again.
func (f *killed) moves(t *testing.T) {
	t.Helper()
	b, stop := f.long()
	defer stop()
	defer func() {
		if t.Failed() {
			f.explain(t, b)
		}
	}()
	b.await(t, "admitted on rights that were borrowed", borrowedBy("us"))
}

// explain describes the state of all nodes, and what they know of a bucket.
func (f *killed) explain(t *testing.T, b *bucket) {
	for _, n := range nodesOf(f.Regions...) {
		s, err := n.Status(t.Context())
		t.Logf("%s: %+v %v\n%+v", n.name, s, err, b.ledger(n))
	}
}

func borrowedBy(region string) func(oracle.Answer) bool {
	return func(a oracle.Answer) bool {
		return a.Region == region && a.Outcome == oracle.Admitted && a.Share > a.Entitlement
	}
}

// journalKnows has the lender's Redis lose everything while nobody is there to tell what was lent:
// the journal must know.
func (f *killed) journalKnows(t *testing.T) {
	b, stop := f.long()
	fromEU := func() (borrowed int64) {
		for _, r := range b.ledger(f.us).Rights {
			if r.Region == "eu" {
				borrowed += r.Borrowed
			}
		}
		return borrowed
	}
	suite.Eventually(t, "us borrows from eu", func() bool { return fromEU() > 0 })
	stop()
	borrowed := fromEU()
	f.us.Kill()
	f.ap.Kill()
	must(t, f.Region("eu").Redis.Client.FlushAll(t.Context()).Err())
	b.waitForStore(f.eu)
	if lent := b.ledger(f.eu).lent("us"); lent < borrowed {
		t.Errorf("us has borrowed %d, and the journal of eu knows of %d", borrowed, lent)
	}
	must(t, f.us.Start(t.Context()))
	must(t, f.ap.Start(t.Context()))
	must(t, f.Meet(t.Context()))
	f.moves(t)
}

// judged checks that nothing was admitted above the limit in any window. A request whose node died
// may have been admitted. In a used-up window such a request shows as an excess, and cannot be told
// from one that was denied.
func (f *killed) judged(b *bucket) {
	f.t.Helper()
	v := b.judge.Verdict()
	doubted, proven := b.excess()
	if v.Proven() || proven > 0 || doubted > b.unanswered.Load() || v.CellsChecked == 0 {
		f.t.Errorf("%s %s: %v, %d units without an answer\n%v", b.name, b.key, v,
			b.unanswered.Load(), v.Violations)
	}
}
