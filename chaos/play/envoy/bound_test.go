package envoy

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// told is the token bucket that an Envoy was told last, as the test understands the facts.
type told struct {
	most, rate float64
	ends       time.Duration
}

// moment is what an Envoy did until some time.
type moment struct {
	at       time.Duration
	admitted int
	// may is the sum of rate times time of the buckets in force, full that of the tokens that new
	// buckets can hold.
	may, full float64
	most      float64 // of the bucket in force
}

// Between any two moments an Envoy that is told token buckets admits at most what the bucket in
// force at the first of them can hold, what the buckets in force fill with, and the tokens that each
// bucket that was built between them can hold.
func TestAdmitsWithinItsBuckets(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		e, now := New(Config{Carries: rapid.Bool().Draw(t, "carries")}), time.Duration(1)
		e.Request(now, one)
		var last told
		all := []moment{{at: now}}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			next := now + time.Duration(rapid.SampledFrom([]int64{0, 1, 1e6, 3e8, 1e9, 25e8}).Draw(t, "step"))
			m := all[len(all)-1]
			if last.ends > now {
				m.may += last.rate * (min(next, last.ends) - now).Seconds()
			}
			if now = next; last.ends <= now {
				last, m.most = told{}, 0
			}
			m.at = now
			if rapid.IntRange(0, 3).Draw(t, "kind") == 0 {
				last, m = tell(t, e, last, m)
			}
			for range rapid.IntRange(0, 12).Draw(t, "requests") {
				if ok, _ := e.Request(now, one); ok {
					m.admitted++
				}
			}
			all = append(all, m)
		}
		for i, from := range all {
			for _, to := range all[i:] {
				most := from.most + to.may - from.may + to.full - from.full
				if got := float64(to.admitted - from.admitted); got > most+1e-6 {
					t.Fatalf("between %v and %v %v were admitted, at most %v may be", from.at, to.at,
						got, most)
				}
			}
		}
	})
}

// tell has an Envoy told a token bucket, or abandoned.
func tell(t *rapid.T, e *Envoy, last told, m moment) (told, moment) {
	if rapid.IntRange(0, 9).Draw(t, "abandon") == 0 {
		e.Received(m.at, message(abandons(one)))
		e.Request(m.at, one)
		m.most = 0
		return told{}, m
	}
	most, rate := rapid.Uint32Range(1, 4).Draw(t, "most"), rapid.Uint32Range(1, 3).Draw(t, "rate")
	ttl := time.Duration(rapid.IntRange(1, 4).Draw(t, "ttl")) * second
	before := e.Rebuilt
	e.Received(m.at, message(assigns(one, bucketOf(most, rate, second), ttl)))
	same := last.ends > m.at && last.most == float64(most) && last.rate == float64(rate)
	if rebuilt := e.Rebuilt - before; same != (rebuilt == 0) {
		t.Fatalf("told %d and %d a second after %v: %d buckets were built", most, rate, last, rebuilt)
	}
	if !same {
		m.full += float64(most)
	}
	m.most = float64(most)
	return told{float64(most), float64(rate), m.at + ttl}, m
}
