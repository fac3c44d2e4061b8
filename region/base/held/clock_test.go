package held

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestAClockGoesOnInSuspension: the machine is suspended, its clock is set ahead and back, and it
// drifts. What passed counts always, and never less than before.
func TestAClockGoesOnInSuspension(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		var passed, monotonic, wall, last, early, missed, noise time.Duration
		c := ClockOf(func() (time.Duration, time.Duration) {
			return monotonic, wall + time.Duration(random.Int64N(1000))
		})
		for range 200 {
			step := time.Duration(random.Int64N(int64(300 * time.Millisecond)))
			suspended := random.IntN(20) == 0
			passed, wall = passed+step, wall+step
			if !suspended {
				monotonic += step
				if random.IntN(20) == 0 { // the clock is set
					by := time.Duration(random.Int64N(int64(20*time.Second))) - 10*time.Second
					by /= time.Duration(1 + random.IntN(20_000))
					wall, early = wall+by, early+max(by, 0)
				}
			} else {
				missed += slack
			}
			for range 3 { // two clocks are never read at once
				got := c.Elapsed()
				if got < last {
					t.Fatalf("seed %d: %v after %v", seed, got, last)
				}
				last = got
			}
			if noise += time.Microsecond; last < passed-missed-noise || last > passed+early+noise {
				t.Fatalf("seed %d: %v passed, and the clock was set ahead by %v: it shows %v", seed, passed, early, last)
			}
		}
	}
}

// TestASuspendedMachineSpendsNothingOfBefore: a machine is suspended while it holds units, and goes on
// in a later window.
func TestASuspendedMachineSpendsNothingOfBefore(t *testing.T) {
	var monotonic, wall time.Duration
	c := ClockOf(func() (time.Duration, time.Duration) { return monotonic, wall })
	m := holding(100, c.Elapsed())
	monotonic, wall = monotonic+ms, wall+ms
	if m.takes(1, c.Elapsed()) == nil {
		t.Fatal("nothing is spent after a millisecond")
	}
	if wall += time.Minute; m.takes(1, c.Elapsed()) != nil || m.Holds(c.Elapsed()) != 0 {
		t.Error("spent after a minute of suspension")
	}
}

func BenchmarkClock(b *testing.B) {
	c, begun := NewClock(), time.Now()
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			c.Elapsed()
		}
	})
	b.Run("monotonic", func(b *testing.B) {
		for b.Loop() {
			time.Since(begun)
		}
	})
}
