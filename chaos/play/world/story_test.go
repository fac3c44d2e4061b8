//go:build !race

package world

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// playStory plays the shortest story in virtual time, so that a busy machine changes nothing.
func playStory(t *testing.T, change func(*Story)) Report {
	t.Helper()
	s := Story{Duration: Shortest, Seed: 1, Scale: 0.1, Algorithm: string(policy.FixedWindow),
		RoundTrip: 80 * time.Millisecond, Log: slog.New(slog.DiscardHandler)}
	// The servers' sockets must not be in the bubble: waiting on them would stop its time.
	var all []*servers.Server
	for range demoRegions {
		server, err := servers.StartDriven(time.Now)
		suite.Must(t, err)
		all = append(all, server)
	}
	s.Redis = func(context.Context) (*servers.Server, error) {
		next := all[0]
		all = all[1:]
		return next, nil
	}
	if change != nil {
		change(&s)
	}
	var r Report
	bubble.Test(t, func(t *testing.T) {
		var err error
		r, err = Play(t.Context(), s)
		suite.Must(t, err)
	})
	return r
}

// phase returns a phase of the report by name.
func phaseOf(t *testing.T, p Report, name string) PhaseReport {
	t.Helper()
	i := slices.IndexFunc(p.Phases, func(ph PhaseReport) bool { return ph.Name == name })
	if i < 0 {
		t.Fatalf("no phase %q in %+v", name, p.Phases)
	}
	return p.Phases[i]
}

// ms returns a figure that must exist.
func ms(t *testing.T, figure *float64) float64 {
	t.Helper()
	if figure == nil {
		t.Fatal("a figure is missing: what it times never happened")
	}
	return *figure
}

func held(t *testing.T, p Report) {
	t.Helper()
	if p.Ceiling.MaxExcess != 0 || p.Ceiling.CellsChecked < 20 {
		t.Errorf("ceiling: %+v, failures %v", p.Ceiling, p.Failures)
	}
}

func TestStoryHolds(t *testing.T) {
	for seed := range suite.Short[uint64](1, 3) {
		p := playStory(t, func(s *Story) { s.Scale, s.Seed = 1, seed+1 })
		held(t, p)
		if !p.OK {
			t.Errorf("seed %d: %v, %v", seed+1, p.Failures, p.NotShown)
		}
		steady, skew, heal := phaseOf(t, p, "steady"), phaseOf(t, p, "skew"), phaseOf(t, p, "heal")
		if steady.FalseDenials != 0 {
			t.Errorf("steady: %d false denials", steady.FalseDenials)
		}
		if first, whole := ms(t, skew.FirstUnitsMS), ms(t, skew.RebalanceMS); first > 280 ||
			whole > 360 {
			t.Errorf("seed %d: skew: first units after %.0f ms, 95 %% of the water-fill after %.0f ms", seed+1, first, whole)
		}
		if got, want := skew.Admitted[cutRegion], skew.Offered[cutRegion]; got*20 < want*19 {
			t.Errorf("skew: %s admitted %d of %d", cutRegion, got, want)
		}
		if back := ms(t, heal.RebalanceMS); back > 5000 {
			t.Errorf("seed %d: heal: shares back after %.0f ms", seed+1, back)
		}
		flood := phaseOf(t, p, "flood")
		if others := flood.Admitted["eu-west"] +
			flood.Admitted["ap-south"]; others < int64(600*flood.Seconds)*95/100 {
			t.Errorf("flood: eu-west and ap-south, who still reach each other, admitted %d together in %.0f s", others, flood.Seconds)
		}
		for _, r := range p.Regions {
			if flood.Degraded[r.Name] < 0.99 || steady.Degraded[r.Name] > 0 {
				t.Errorf("%s: degraded %v in steady, %v in the flood", r.Name, steady.Degraded,
					flood.Degraded)
			}
			if flood.ShareEnd[r.Name] != r.Entitlement {
				t.Errorf("flood: %s holds %d, its fixed split is %d", r.Name,
					flood.ShareEnd[r.Name], r.Entitlement)
			}
		}
	}
}

// The negative controls: the verdict must be able to fail.

func TestTwiceTheShareBreaksTheCeiling(t *testing.T) {
	p := playStory(t, func(s *Story) { s.Inflate = 2 })
	if p.OK || p.Ceiling.MaxExcess == 0 {
		t.Errorf("a build that admits twice its share passed: %+v", p.Ceiling)
	}
}

func TestWithoutLendingSharesDoNotComeBack(t *testing.T) {
	p := playStory(t, func(s *Story) { s.Exchange = exchange.Options{WithoutLending: true} })
	held(t, p)
	if p.OK || len(p.Failures) > 0 ||
		!strings.Contains(strings.Join(p.NotShown, " "), "shares did not come back") {
		t.Errorf("passed without lending: %v, %v", p.Failures, p.NotShown)
	}
}

func TestRightsForTheNextCellCarryLongRoundTrips(t *testing.T) {
	suite.Long(t)
	far := func(s *Story) { s.Duration, s.RoundTrip = time.Minute, 600*time.Millisecond }
	with := playStory(t, far)
	without := playStory(t, func(s *Story) {
		far(s)
		s.Exchange = exchange.Options{WithoutAdvance: true}
	})
	held(t, with)
	held(t, without)
	a, b := phaseOf(t, with, "heal"), phaseOf(t, without, "heal")
	t.Logf("heal at 600 ms: %d false denials with rights for the next cell, %d without",
		a.FalseDenials, b.FalseDenials)
	// Both lose the first seconds after the heal.
	if 2*b.FalseDenials < 3*a.FalseDenials || b.FalseDenialRate < 0.1 {
		t.Errorf("heal at 600 ms: %d false denials with rights for the next cell, %d without",
			a.FalseDenials, b.FalseDenials)
	}
}

// Without hints everything except the number of asks in vain stays the same. Package exchange
// counts those.
func TestCeilingHoldsWithoutHints(t *testing.T) {
	p := playStory(t, func(s *Story) { s.Exchange = exchange.Options{WithoutHints: true} })
	held(t, p)
	if !p.OK {
		t.Errorf("without hints: %v, %v", p.Failures, p.NotShown)
	}
}

// liar is a gossip member that sends hints in every region's name.
type liar struct{ told atomic.Uint64 }

func (l *liar) MarshalBinary() ([]byte, error) {
	n := l.told.Add(1)
	all := &hintv1.Hints{}
	bucket := policy.BucketRef{Domain: "demo", Name: "demo", Algorithm: policy.FixedWindow,
		Window: demoWindow,
		Key:    []policy.KeyValue{{Name: "account", Value: account}}}.ID()
	for i, r := range demoRegions {
		all.Hints = append(all.Hints, &hintv1.Hint{Region: r.Name, Node: "n1",
			Bucket: []byte(bucket), Incarnation: 1 << 60,
			Sequence: n, Cell: time.Now().UnixMicro() / demoWindow.Microseconds(),
			Used: int64(n%3) << 50, RateMilli: -1 << uint(i*20), Share: 1 << 62,
			Spare: int64(n % 2 * 1 << 61)})
	}
	return proto.Marshal(all)
}

func (l *liar) Merge([]byte) (bool, error) { return false, nil }

func TestAdversarialHintsDoNotMoveTheCeiling(t *testing.T) {
	var mallory *gossip.Gossip
	heard := 0 // members that mallory was among
	p := playStory(t, func(s *Story) {
		s.Begun = func(w *World) error {
			lies := &liar{}
			var err error
			if mallory, err = w.Join("mallory", gossip.Config{Name: "mallory", State: lies}); err != nil {
				return err
			}
			go func() {
				for range 400 {
					time.Sleep(50 * time.Millisecond) // of virtual time
					heard = max(heard, len(mallory.Members()))
					if b, err := lies.MarshalBinary(); err == nil {
						_ = mallory.Broadcast("lies", b) // refused once it is closed
					}
				}
				_ = mallory.Close()
			}()
			return nil
		}
	})
	held(t, p)
	if heard != len(demoRegions)+1 {
		t.Errorf("the liar was one of %d members: nobody heard it", heard)
	}
}

func TestReportIsOneDocument(t *testing.T) {
	p := playStory(t, nil)
	b, err := json.Marshal(p)
	suite.Must(t, err)
	for _, field := range []string{`"limit":100`, `"window":"1s"`, `"algorithm":"fixed_window"`,
		`"name":"us-east","entitlement":40`,
		`"rebalance_ms":`, `"false_denial_rate":`, `"cells_checked":`, `"excess_terms":[]`,
		`"ok":true`} {
		if !strings.Contains(string(b), field) {
			t.Errorf("the report has no %s: %s", field, b)
		}
	}
}
