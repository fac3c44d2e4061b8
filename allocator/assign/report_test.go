//go:build !race

package assign

import (
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// scripted is one Envoy at one node, whose store gives all that is asked for at once.
type scripted struct {
	m        *Machine
	bucket   *Bucket
	now      quantity.NodeTime
	reported quantity.NodeTime // when it reported last
	// holdsBack says that the driver has sent nothing yet.
	holdsBack bool
}

func newScripted() *scripted {
	return &scripted{m: New(1), now: second, bucket: &Bucket{ID: "b", Window: second,
		Cells: algorithms.Cells{Length: cellLength}, TTL: 10, Entitlement: 1000, Burst: 400}}
}

// report has the Envoy report, on time.
func (s *scripted) report(allowed, denied quantity.Units) {
	elapsed := int64(0)
	if s.reported > 0 {
		elapsed = s.now.Sub(s.reported) / second
	}
	s.reported = s.now
	s.m.Reported(s.now, 1, []Report{{Key: "k", Buckets: []*Bucket{s.bucket}, Allowed: allowed,
		Denied: denied, Elapsed: elapsed}})
}

// run lets seconds pass, and returns the assignments that were sent.
func (s *scripted) run(seconds int) (sends []Send) {
	for end := s.now.Add(int64(seconds) * second); s.now < end; s.now = s.now.Add(second / 5) {
		at := quantity.StoreTime(s.now)
		out := s.m.Tick(s.now, at)
		for _, h := range out.Holds {
			s.m.Held(s.now, Held{Bucket: h.Bucket, Cell: h.Cell, Asked: s.now, At: at, Held: h.Held,
				Returned: h.Returned})
		}
		for _, c := range out.Charges {
			s.m.Charged(s.now, c, true)
		}
		for _, one := range out.Sends {
			if !s.holdsBack {
				s.m.Sent(s.now, one.Stream, one.Key)
			}
		}
		sends = append(sends, out.Sends...)
	}
	return sends
}

// held returns what the node holds of the current cell.
func (s *scripted) held() quantity.Units {
	v, _ := s.m.View(s.now, "b", 0)
	return v.Held
}

// A report says what was asked for since the one before, once.
func TestAReportCountsOnce(t *testing.T) {
	s := newScripted()
	s.report(0, 1)
	s.run(5)
	for range 3 {
		s.report(500, 0)
		s.run(5)
	}
	v, _ := s.m.View(s.now, "b", 1)
	if got := v.Holdings[0].Demand; got < 95_000 || got > 105_000 {
		t.Errorf("500 in 5 s are a demand of %d thousandths a second", got)
	}
}

// What an Envoy has that misses reports stays held, and is not renewed, until it reports or a time
// to live after its stream has ended: it may be paused with the last message before it.
func TestASilentEnvoyKeepsWhatItHas(t *testing.T) {
	s := newScripted()
	s.report(0, 1)
	s.run(5)
	s.report(500, 0)
	s.run(5)
	s.report(500, 0)
	sends := s.run(12)
	last := int(sends[len(sends)-1].TTL)
	if sends := s.run(30); len(sends) > 0 {
		t.Errorf("a silent Envoy is sent %v", sends)
	}
	if held := s.held(); held < 100 {
		t.Errorf("a silent Envoy may have 100 a second, and %d are held", held)
	}
	s.m.Ended(s.now, 1)
	s.run(last - 1)
	if held := s.held(); held < 100 {
		t.Errorf("%d s after the end of its stream %d are held", last-1, held)
	}
	s.run(12)
	if held := s.held(); held > 0 {
		t.Errorf("%d are held for nobody", held)
	}
}

// TestALateReportEndsNoAssignment: what an assignment had that was replaced comes free when a report was
// sent after the Envoy took the next, and not when one comes that was sent before.
func TestALateReportEndsNoAssignment(t *testing.T) {
	for name, c := range map[string]struct {
		late  int // seconds
		holds bool
	}{"on time": {0, false}, "four seconds late": {4, true}} {
		t.Run(name, func(t *testing.T) {
			s := newScripted()
			s.report(0, 1)
			s.run(5)
			for range 4 {
				s.report(2000, 0)
				s.run(5)
			}
			s.report(2000, 0)
			s.run(4)
			s.m.Allot(s.now, map[string]quantity.Units{"b": 100})
			if sends := s.run(1); len(sends) != 1 || sends[0].Rate > 100 {
				t.Fatalf("it is sent %v", sends)
			}
			s.run(4)
			sent := s.now.Add(int64(-c.late) * second)
			elapsed := sent.Sub(s.reported) / second
			s.reported = sent
			s.m.Reported(s.now, 1, []Report{{Key: "k", Buckets: []*Bucket{s.bucket}, Allowed: 2000, Elapsed: elapsed}})
			s.run(1)
			if held := s.held(); (held >= 400) != c.holds {
				t.Errorf("%d a second are held, where the Envoy may have had 400", held)
			}
		})
	}
}

// TestTokensOfWhatWasNotSent: the tokens of an assignment that was not sent go back to the purse, unless
// the store has lost meanwhile what was paid for them.
func TestTokensOfWhatWasNotSent(t *testing.T) {
	for name, lost := range map[string]bool{"kept": false, "lost": true} {
		t.Run(name, func(t *testing.T) {
			s := newScripted()
			s.holdsBack = true
			s.report(0, 1)
			sends := s.run(1)
			if len(sends) != 1 {
				t.Fatalf("it is to be sent %v", sends)
			}
			if lost {
				s.m.Forget(s.now.Add(second / 10))
			}
			before, _ := s.m.View(s.now, "b", 0)
			s.m.Unsent(s.now.Add(second/5), sends[0].Stream, sends[0].Key)
			after, _ := s.m.View(s.now, "b", 0)
			if back := after.Purse - before.Purse; (back == sends[0].Burst) == lost || lost && back != 0 {
				t.Errorf("%d tokens go back of %d", back, sends[0].Burst)
			}
		})
	}
}
