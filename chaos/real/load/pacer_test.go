package load

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// dues lists when the first n requests of a schedule fall due.
func dues(seed uint64, cost int64, r Rate, n int) []time.Duration {
	s := newSchedule(seed, cost)
	s.setRate(0, r)
	var all []time.Duration
	for range n {
		at := s.due
		all = append(all, at)
		if got := s.advance(at); got != 1 {
			panic("the schedule is not one request after the other")
		}
	}
	return all
}

// someRate and someTime draw evenly over the orders of magnitude that matter. A plain range would
// nearly always give one order of magnitude.
var (
	someRate = rapid.SampledFrom([]Rate{1, 300, 2500, PerSecond(7), PerSecond(150), PerSecond(200),
		PerSecond(333), PerSecond(2000)})
	someTime = rapid.Custom(func(t *rapid.T) time.Duration {
		unit := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond,
			30 * time.Millisecond}).Draw(t, "unit")
		return unit * time.Duration(rapid.IntRange(0, 60).Draw(t, "units"))
	})
)

// within counts the sorted times in from <= t < to.
func within(times []time.Duration, from, to time.Duration) int {
	a, _ := slices.BinarySearch(times, from)
	b, _ := slices.BinarySearch(times, to)
	return b - a
}

func TestScheduleIsEvenAndJittered(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		perSecond := rapid.SampledFrom([]int64{1, 3, 70, 199, 201, 1000, 3000}).Draw(t, "rate")
		all := dues(rapid.Uint64().Draw(t, "seed"), 1, PerSecond(perSecond), int(3*perSecond))
		spacing := float64(time.Second) / float64(perSecond)
		for i := 1; i < len(all); i++ {
			if d := float64(all[i] - all[i-1]); math.Abs(d-spacing) > 0.06*spacing+2 {
				t.Fatalf("request %d comes %v after the one before, spacing %v", i,
					time.Duration(d), time.Duration(spacing))
			}
		}
		from := time.Duration(rapid.Int64Range(0, int64(1500*time.Millisecond)).Draw(t, "from"))
		if n := within(all, from, from+time.Second); math.Abs(float64(n)-float64(perSecond)) > 1 {
			t.Fatalf("%d requests in a second at %d per second", n, perSecond)
		}
	})
}

func TestScheduleDoesNotDrift(t *testing.T) {
	s := newSchedule(1, 7)
	s.setRate(0, PerSecond(1000)) // 142.857... requests a second
	if n := s.advance(3 * time.Hour); math.Abs(float64(n)-10_800_000.0/7) > 1 {
		t.Errorf("%d requests in three hours, want 1542857", n)
	}
}

func TestScheduleFromSeed(t *testing.T) {
	one := dues(1, 1, PerSecond(100), 1000)
	if !slices.Equal(one, dues(1, 1, PerSecond(100), 1000)) {
		t.Error("the same seed gives another schedule")
	}
	if slices.Equal(one, dues(2, 1, PerSecond(100), 1000)) {
		t.Error("another seed gives the same schedule")
	}
	var spread bool
	for i := 2; i < len(one); i++ {
		spread = spread || one[i]-one[i-1] != one[1]-one[0]
	}
	if !spread {
		t.Error("there is no jitter")
	}
}

func TestScheduleAtTheEdges(t *testing.T) {
	tests := []struct {
		name string
		cost int64
		rate Rate
		due  bool // ever
	}{
		{"standing still", 1, 0, false},
		{"slowest and dearest", MaxCost, 1, false},
		{"slowest", 1, 1, true},
		{"fastest", 1, MaxRate, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSchedule(3, tt.cost)
			s.setRate(0, tt.rate)
			first := s.due
			s.advance(first)
			if tt.due && (s.due == never || s.due <= first) {
				t.Errorf("due at %v, then at %v", first, s.due)
			}
			if !tt.due && s.due != never {
				t.Errorf("due at %v", s.due)
			}
		})
	}
	if got := PerSecond(math.MaxInt64); got != MaxRate {
		t.Errorf("PerSecond of too much is %d", got)
	}
	if got := PerSecond(-1); got != 0 {
		t.Errorf("PerSecond of less than nothing is %d", got)
	}
}

// Whatever the changes of rate, the number of requests that fall due is the integral of the rate.
func TestChangesOfRateLoseNothing(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		s := newSchedule(rapid.Uint64().Draw(t, "seed"), 1)
		var now time.Duration
		var due int64
		var want, slack float64
		s.setRate(0, 0)
		for range rapid.IntRange(1, 20).Draw(t, "changes") {
			due += s.advance(now)
			r := someRate.Draw(t, "rate")
			s.setRate(now, r)
			d := someTime.Draw(t, "for")
			now += d
			want += float64(r) / 1000 * d.Seconds()
			slack += 0.03 // the most that jitter can hide at a change
		}
		due += s.advance(now)
		if math.Abs(float64(due)-want) > 1.1+slack {
			t.Fatalf("%d due, the rates come to %.2f", due, want)
		}
	})
}

// A pacer that is woken at any times sends all that fell due, never before its time, and never more
// than the bound in one quantum.
func TestPacerAfterHiccups(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		rate := someRate.Draw(t, "rate")
		p := pacer{schedule: newSchedule(seed, 1)}
		twin := newSchedule(seed, 1)
		p.setRate(0, rate)
		twin.setRate(0, rate)
		bound := defaultBurst(rate, 1)
		perQuantum := map[int64]int64{}
		var sent, due int64
		var now time.Duration
		for range rapid.IntRange(1, 50).Draw(t, "wakes") {
			now += someTime.Draw(t, "slept")
			n := p.take(now)
			sent += n
			perQuantum[int64(now/Quantum)] += n
			if due += twin.advance(now); sent+p.behind != due {
				t.Fatalf("%d sent and %d behind of %d due", sent, p.behind, due)
			}
			if perQuantum[int64(now/Quantum)] > bound {
				t.Fatalf("%d sent in one quantum, the bound is %d", perQuantum[int64(now/Quantum)],
					bound)
			}
		}
		// Without changes, it catches up at four times the pace or more.
		behind := p.behind
		for wakes := int64(0); p.behind > 0; wakes++ {
			if wakes > 2*behind {
				t.Fatalf("%d behind, still %d after %d wake-ups", behind, p.behind, wakes)
			}
			next := p.wake(now)
			if next <= now {
				t.Fatalf("woken at %v for %v", now, next)
			}
			now = next
			sent += p.take(now)
		}
		if due += twin.advance(now); sent != due {
			t.Fatalf("caught up with %d sent of %d due", sent, due)
		}
	})
}

func TestPacerWakes(t *testing.T) {
	tests := []struct {
		name   string
		rate   Rate
		behind int64
		want   func(due time.Duration) time.Duration
	}{
		{"a slow pace at its exact time", PerSecond(200), 0,
			func(due time.Duration) time.Duration { return due }},
		{"a fast pace at the quantum", PerSecond(201), 0,
			func(time.Duration) time.Duration { return Quantum }},
		{"no pace never", 0, 0, func(time.Duration) time.Duration { return never }},
		{"behind at the next quantum, even without a pace", 0, 3,
			func(time.Duration) time.Duration { return Quantum }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := pacer{schedule: newSchedule(5, 1)}
			p.setRate(0, tt.rate)
			p.behind = tt.behind
			if got, want := p.wake(0), tt.want(p.schedule.due); got != want {
				t.Errorf("wakes at %v, want %v", got, want)
			}
		})
	}
}

func TestDefaultBurst(t *testing.T) {
	tests := []struct {
		rate Rate
		cost int64
		want int64
	}{
		{0, 1, 4},
		{PerSecond(100), 1, 4},
		{PerSecond(1000), 1, 24},
		{PerSecond(1000), 5, 8},
		{MaxRate, 1, 20004},
	}
	for _, tt := range tests {
		if got := defaultBurst(tt.rate, tt.cost); got != tt.want {
			t.Errorf("rate %d, cost %d: %d, want %d", tt.rate, tt.cost, got, tt.want)
		}
	}
}
