package held

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

const batch, bulk quantity.PPM = 600_000, 100_000

// part returns an answer of a window of 10 units, of which so many are free, that a cost was denied
// to a part.
func part(at time.Duration, of quantity.PPM, cost, free quantity.Units) Answer {
	a := answer(at, free)
	a.State.Share, a.State.Used = 10, 10-free
	a.Lower = []PartAnswer{{Part: of, Denied: cost, Free: max(free-a.State.Withheld("", of), 0),
		Verdict: algorithms.Verdict{Retry: time.Minute.Microseconds(), Remaining: free}}}
	return a
}

// TestDenyPart: a denial is remembered for its part alone. It is forgotten when the cost fits into
// the part.
func TestDenyPart(t *testing.T) {
	const at, now = time.Second, 1020 * ms
	whole := denied(at+2*ms, 1, time.Minute)
	whole.State.Share, whole.State.Used = 10, 10
	fits := part(at+ms, bulk, 0, 3)
	fits.Lower = append(fits.Lower, PartAnswer{Part: batch, Fitted: 2})
	another := answer(at+ms, 3)
	another.Generation, another.State.Share, another.State.Used = 2, 10, 7
	for _, tc := range []struct {
		name  string
		heard []Answer
		part  quantity.PPM
		cost  quantity.Units
		want  bool
	}{
		{"nothing", nil, batch, 1, false},
		{"its own", []Answer{part(at, batch, 1, 4)}, batch, 1, true},
		{"a larger cost", []Answer{part(at, batch, 1, 4)}, batch, 4, true},
		{"a cost for which there is no room at all", []Answer{part(at, batch, 1, 4)}, batch, 5, true},
		{"a smaller cost", []Answer{part(at, batch, 2, 4)}, batch, 1, false},
		{"that of a smaller part", []Answer{part(at, bulk, 1, 4)}, batch, 1, false},
		{"that of a smaller part, for the whole", []Answer{part(at, batch, 1, 4)}, algorithms.Whole, 1, false},
		{"that of the whole says nothing of when", []Answer{whole}, batch, 1, false},
		{"the whole is used up since", []Answer{part(at, batch, 1, 4), whole}, batch, 1, true},
		{"another part was denied since", []Answer{part(at, batch, 1, 4), part(at+ms, bulk, 1, 4)}, batch, 1, true},
		{"units came back", []Answer{part(at, batch, 1, 4), answered(at+ms, 6)}, batch, 1, false},
		{"too few came back", []Answer{part(at, batch, 3, 4), answered(at+ms, 6)}, batch, 3, true},
		{"as much fitted since", []Answer{part(at, batch, 2, 4), fits}, batch, 2, false},
		{"another generation", []Answer{part(at, batch, 1, 4), another}, batch, 1, false},
		{"a smaller one, later", []Answer{part(at, batch, 5, 4), part(at+ms, batch, 2, 4)}, batch, 2, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var m Memory
			for _, a := range tc.heard {
				m.Learn(a)
			}
			_, denied, turn := m.DenyPart(tc.part, tc.cost, 1, now)
			if denied != tc.want || turn {
				t.Errorf("denied %v, turn %v", denied, turn)
			}
			m.Forget(quantity.StoreTime(1 << 60))
			if _, denied, _ := m.DenyPart(tc.part, tc.cost, 1, now); denied {
				t.Error("it is not forgotten")
			}
		})
	}
}

// answered is an answer of a window of 10 units with so many free.
func answered(at time.Duration, free quantity.Units) Answer {
	a := answer(at, free)
	a.State.Share, a.State.Used = 10, 10-free
	return a
}

// TestLowerTurns: requests of smaller parts take turns among themselves, and nobody who may use all
// waits behind them.
func TestLowerTurns(t *testing.T) {
	var m Memory
	c := Coming{Now: 1_000_000, Alone: time.Second, Cost: 1, Rate: 1, Window: time.Second, Within: time.Minute, Lower: true}
	for i := range 5 {
		if got, want := m.Turn(c, true), time.Duration(i+1)*time.Second; got != want {
			t.Errorf("turn %d of a smaller part in %v, want %v", i, got, want)
		}
	}
	c.Lower = false
	if got := m.Turn(c, true); got != time.Second {
		t.Errorf("turn of the whole in %v", got)
	}
}
