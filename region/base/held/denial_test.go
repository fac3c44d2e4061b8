package held

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// denies reports whether a request is denied from memory at a time, by a store of generation 1.
func (m *Memory) denies(cost quantity.Units, now time.Duration) bool {
	_, denied, _ := m.Deny(cost, 1, now)
	return denied
}

// What was answered decides whether a request of 5 units is denied from memory 20 ms later.
func TestDeny(t *testing.T) {
	const at, now = time.Second, 1020 * ms
	never := denied(at, 5, time.Minute)
	never.Verdict.Retry = -1
	recovering := denied(at, 5, time.Minute)
	recovering.State.Shut = recovering.Now + 1
	recovered := denied(at, 5, time.Minute)
	recovered.State.Shut = recovered.Now
	roomy := denied(at+2*ms, 6, time.Minute) // 5 units are free
	late := denied(at-10*ms, 5, time.Minute)
	late.Heard = at + 10*ms
	early := fitted(at-10*ms, 9, 20)
	early.Heard = at + 10*ms
	old := denied(at-10*ms, 2, time.Minute)
	another := denied(at+ms, 5, time.Minute)
	another.Generation = 2
	for _, tc := range []struct {
		name    string
		heard   []Answer
		changes quantity.StoreTime // rights or units came back then, after the answers
		want    bool
	}{
		{"nothing", nil, 0, false},
		{"the cost was denied", []Answer{denied(at, 5, time.Minute)}, 0, true},
		{"less was denied", []Answer{denied(at, 4, time.Minute)}, 0, true},
		{"more was denied", []Answer{denied(at, 6, time.Minute)}, 0, false},
		{"it was admitted", []Answer{fitted(at, 5, 0)}, 0, false},
		{"the region can never admit it", []Answer{never}, 0, false},
		{"the bucket recovers", []Answer{recovering}, 0, false},
		{"the bucket has recovered", []Answer{recovered}, 0, true},
		{"the retry time comes now", []Answer{denied(at, 5, 19*ms)}, 0, false},
		{"the retry time comes later", []Answer{denied(at, 5, 22*ms)}, 0, true},
		{"less, and then more, was denied", []Answer{denied(at, 4, time.Minute),
			denied(at+2*ms, 4, time.Minute)}, 0, true},
		{"more, and then the cost, was denied", []Answer{denied(at, 9, time.Minute),
			denied(at+2*ms, 5, time.Minute)}, 0, true},
		{"it was admitted after that", []Answer{denied(at, 5, time.Minute), fitted(at+ms, 5, 0)},
			0, false},
		{"it was admitted after that, as was heard before", []Answer{fitted(at, 5, 0), late}, 0,
			false},
		{"less was admitted after that", []Answer{denied(at, 5, time.Minute), fitted(at+ms, 4, 0)},
			0, true},
		{"it was admitted before, as is heard now", []Answer{denied(at, 5, time.Minute), early},
			0, true},
		{"less was denied before, as is heard now", []Answer{denied(at, 6, time.Minute), old},
			0, false},
		{"there is room, though more was denied", []Answer{denied(at, 5, time.Minute), roomy},
			0, false},
		{"another generation since", []Answer{denied(at, 5, time.Minute), another}, 0, false},
		{"a change before", []Answer{denied(at, 5, time.Minute)}, storeAt(at) - 1, true},
		{"a change at the same time", []Answer{denied(at, 5, time.Minute)}, storeAt(at), false},
		{"a change since", []Answer{denied(at, 5, time.Minute)}, storeAt(at + 10*ms), false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for _, order := range []string{"change last", "change first"} {
				var m Memory
				if order == "change first" {
					m.Forget(tc.changes)
				}
				for _, a := range tc.heard {
					m.Learn(a)
				}
				m.Forget(tc.changes)
				if got := m.denies(5, now); got != tc.want {
					t.Errorf("%s: denied %v, want %v", order, got, tc.want)
				}
			}
		})
	}
	var m Memory
	m.Learn(denied(at, 5, time.Minute))
	if _, denies, _ := m.Deny(5, 2, now); denies {
		t.Error("denied under another generation")
	}
}

// A denial is not told in the next cell, in which the region may have other rights.
func TestDenialEndsWithItsCell(t *testing.T) {
	var m Memory
	at := length - 50*ms
	m.Learn(denied(at, 5, time.Minute))
	if !m.denies(5, length-2*ms) {
		t.Error("not denied in the cell")
	}
	if m.denies(5, length) {
		t.Error("denied in the next cell")
	}
	m.Learn(denied(length+ms, 7, time.Minute)) // the older one, of less, is over
	if m.denies(5, length+10*ms) || !m.denies(7, length+10*ms) {
		t.Error("the denial of the cell before counts in the next one")
	}
}

// What is told is what the store would tell: its time goes on, and the retry time shrinks.
func TestWhatIsTold(t *testing.T) {
	var m Memory
	a := denied(time.Second, 5, 300*ms)
	a.State.Reset = (80 * ms).Microseconds()
	m.Learn(a)
	for _, after := range []time.Duration{2 * ms, 50 * ms, 90 * ms} {
		d, denies, _ := m.Deny(5, 1, time.Second+after)
		want := a.State
		// The node does not know when within its round trip the store answered.
		want.Reset = max(80*ms-after+ms, 0).Microseconds()
		if !denies || d.State != want {
			t.Fatalf("after %v: %v, %+v, want %+v", after, denies, d, want)
		}
		if real := storeAt(time.Second + after); d.Now > real ||
			d.Now < real.Add(-(2*ms).Microseconds()) {
			t.Errorf("after %v: the store's time is %d, told %d", after, real, d.Now)
		}
		left := (300*ms - after).Microseconds()
		if d.Verdict.Retry > left || d.Verdict.Retry < left-(2*ms).Microseconds() {
			t.Errorf("after %v: retry %d, want %d", after, d.Verdict.Retry, left)
		}
	}
}

// In each AskAgain one of the requests asks, also if they come at the same moment.
func TestOneAsksAgain(t *testing.T) {
	var m Memory
	const at = time.Second
	m.Learn(denied(at, 5, time.Minute))
	asked := 0
	for now := at + ms; now < at+ms+10*AskAgain; now += ms {
		var ask atomic.Int64
		var callers sync.WaitGroup
		for range 4 {
			callers.Go(func() {
				_, denied, turn := m.Deny(5, 1, now)
				if denied == turn {
					t.Errorf("at %v: denied %v, its turn %v", now, denied, turn)
				}
				if turn {
					ask.Add(1)
				}
			})
		}
		callers.Wait()
		if ask.Load() > 1 {
			t.Fatalf("%d ask at %v", ask.Load(), now)
		}
		asked += int(ask.Load())
	}
	if asked != 10 {
		t.Errorf("%d asked within %v, want 10", asked, 10*AskAgain)
	}
}

// A request that is denied for more leaves it to others to ask for less.
func TestADenialOfMoreKeepsTheOlder(t *testing.T) {
	var m Memory
	m.Learn(denied(time.Second, 5, time.Minute))
	a := denied(1010*ms, 8, time.Minute)
	a.State.Free = 4
	m.Learn(a)
	if !m.denies(5, 1020*ms) {
		t.Error("the denial of less is forgotten")
	}
}

// realBucket is a bucket with so many units free, and a memory that hears of it late and out of
// order. It is the twin of Memory: it knows since when each cost fits.
type realBucket struct {
	free  quantity.Units
	since map[quantity.Units]time.Duration // by cost: since when it fits
	way   []onWay                          // answers that are heard later
}

// onWay is an answer that the store gave at a time, and that is heard at a time at the latest.
type onWay struct {
	Answer
	at, latest time.Duration
}

func (b *realBucket) set(free quantity.Units, now time.Duration) {
	for cost := quantity.Units(1); cost <= 8; cost++ {
		if cost > free {
			delete(b.since, cost)
		} else if _, fits := b.since[cost]; !fits {
			b.since[cost] = now
		}
	}
	b.free = free
}

// Whatever happens to a bucket, no denial is told of a cost that has fitted since before the last
// answer that was heard, and somebody has asked within AskAgain.
func TestDenialsHaveAReason(t *testing.T) {
	const slowest = 20 * ms // from an answer until it is heard
	suite.Check(t, func(r *rapid.T) {
		var m Memory
		b := &realBucket{since: map[quantity.Units]time.Duration{}}
		now, lastAsked, heard := time.Second, time.Second, time.Duration(0)
		ask := func(cost quantity.Units) {
			a := denied(now, cost, length)
			if cost <= b.free {
				b.set(b.free-cost, now)
				a = fitted(now, cost, b.free)
			}
			a.State.Free, a.Asked = b.free, now
			lastAsked = now
			b.way = append(b.way, onWay{a, now, now + slowest})
		}
		hear := func(i int) {
			b.way[i].Heard = now
			m.Learn(b.way[i].Answer)
			heard = max(heard, b.way[i].at)
			b.way = slices.Delete(b.way, i, i+1)
		}
		for range rapid.IntRange(20, 200).Draw(r, "steps") {
			now += time.Duration(rapid.IntRange(1, 15).Draw(r, "passes")) * ms
			for len(b.way) > 0 && b.way[0].latest <= now {
				hear(0)
			}
			cost := quantity.Units(rapid.IntRange(1, 8).Draw(r, "cost"))
			what := []string{"asks", "asks", "asks", "asks", "asks", "hears", "hears", "lent",
				"elsewhere", "gone"}
			switch rapid.SampledFrom(what).Draw(r, "what") {
			case "asks":
				if !m.denies(cost, now) {
					ask(cost)
					continue
				}
				if since, fits := b.since[cost]; fits && since < heard {
					r.Fatalf("at %v: told that %d do not fit, though they do since %v: heard of %v",
						now, cost, since, heard)
				}
				if now-lastAsked > AskAgain {
					r.Fatalf("at %v: nobody asked since %v", now, lastAsked)
				}
			case "hears":
				if len(b.way) > 0 {
					hear(rapid.IntRange(0, len(b.way)-1).Draw(r, "which"))
				}
			case "lent": // to this region, or refunded by this node: it hears of that at once
				b.set(b.free+cost, now)
				m.Forget(storeAt(now))
				if m.denies(cost, now) {
					r.Fatalf("at %v: a denial outlived what came back", now)
				}
			case "elsewhere": // refunded by another node: this one is not told
				b.set(b.free+cost, now)
			case "gone": // other nodes use units
				b.set(max(b.free-cost, 0), now)
			}
		}
	})
}

func TestDenyAllocatesNothing(t *testing.T) {
	var m Memory
	m.Learn(denied(time.Second, 5, time.Minute))
	now := 1010 * ms
	if n := testing.AllocsPerRun(1000, func() {
		now += ms
		m.denies(5, now)
		m.denies(4, now)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
