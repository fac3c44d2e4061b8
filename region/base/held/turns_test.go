package held

import (
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/quantity"
)

// ten is a denial at a time, of a bucket into which ten units come each second and the next one
// after 30 ms.
func ten(at time.Duration, cost quantity.Units) Coming {
	return Coming{Now: quantity.StoreTime(at.Microseconds()), Alone: 30 * ms, Cost: cost, Rate: 10,
		Window: time.Second, Within: time.Second}
}

// Who is denied one after the other is told of units that come one after the other.
func TestTurns(t *testing.T) {
	lent := ten(time.Second, 1)
	lent.After, lent.More = 200*ms, 40
	burst := lent
	burst.AtOnce = 5
	soon := lent // and this region's own rate brings the cost after longer than turns are given
	soon.Alone, soon.Within = time.Hour, 250*ms
	none := ten(time.Second, 1)
	none.Rate = 0
	far := ten(time.Second, 1)
	far.Alone = 2 * time.Second // beyond a window: a cost that a window does not bring
	slow := ten(time.Second, 1)
	slow.Window, slow.Within, slow.Alone = 30*24*time.Hour, 30*24*time.Hour, time.Hour
	for name, tc := range map[string]struct {
		denied []Coming
		want   []time.Duration
	}{
		"three":                       {[]Coming{ten(time.Second, 1), ten(time.Second, 1), ten(time.Second, 1)}, []time.Duration{30 * ms, 130 * ms, 230 * ms}},
		"of different costs":          {[]Coming{ten(time.Second, 1), ten(time.Second, 4), ten(time.Second, 1)}, []time.Duration{30 * ms, 430 * ms, 530 * ms}},
		"later":                       {[]Coming{ten(time.Second, 1), ten(time.Second, 1), ten(1100*ms, 1)}, []time.Duration{30 * ms, 130 * ms, 130 * ms}},
		"turns that passed":           {[]Coming{ten(time.Second, 1), ten(time.Second, 1), ten(5*time.Second, 1)}, []time.Duration{30 * ms, 130 * ms, 30 * ms}},
		"beyond a window":             {[]Coming{ten(time.Second, 1), ten(time.Second, 9), ten(time.Second, 1)}, []time.Duration{30 * ms, 930 * ms, 30 * ms}},
		"no rate":                     {[]Coming{none, none}, []time.Duration{30 * ms, 30 * ms}},
		"beyond what a window brings": {[]Coming{far, far}, []time.Duration{2 * time.Second, 2 * time.Second}},
		"beyond an hour":              {[]Coming{slow, slow}, []time.Duration{time.Hour, time.Hour}},
		"the clock went back":         {[]Coming{ten(3*time.Second, 1), ten(time.Second, 1)}, []time.Duration{30 * ms, 30 * ms}},
		"others lend":                 {[]Coming{lent, lent, lent, lent, lent}, []time.Duration{30 * ms, 130 * ms, 220 * ms, 240 * ms, 260 * ms}},
		"others lend, within a while": {[]Coming{soon, soon, soon, soon}, []time.Duration{200 * ms, 220 * ms, 240 * ms, 200 * ms}},
		"others lend tokens, too":     {[]Coming{lent, lent, burst, burst}, []time.Duration{30 * ms, 130 * ms, 210 * ms, 220 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			var m Memory
			for i, c := range tc.denied {
				if asked := m.Turn(c, false); asked != tc.want[i] {
					t.Errorf("the turn of request %d would be after %v, want %v", i, asked, tc.want[i])
				}
				if told := m.Turn(c, true); told != tc.want[i] {
					t.Errorf("the turn of request %d is after %v, want %v", i, told, tc.want[i])
				}
			}
		})
	}
}

// A caller who asks again and again takes turns for itself. However many it takes, nobody is told a
// time after the window, and all times are told equally often.
func TestAFloodOfTurns(t *testing.T) {
	var m Memory
	told := map[time.Duration]int{}
	for range 1000 {
		told[m.Turn(ten(time.Second, 1), true)]++
	}
	for after, times := range told {
		if after > time.Second || times != 100 {
			t.Errorf("%d were told %v, want 100 of 1000", times, after)
		}
	}
}

// No two who are denied at the same time get one turn.
func TestTurnsAreTakenOnce(t *testing.T) {
	var m Memory
	var all sync.WaitGroup
	turns := make(chan time.Duration, 8)
	for range cap(turns) {
		all.Go(func() { turns <- m.Turn(ten(time.Second, 1), true) })
	}
	all.Wait()
	close(turns)
	seen := map[time.Duration]bool{}
	for turn := range turns {
		if seen[turn] {
			t.Errorf("%v was told twice", turn)
		}
		seen[turn] = true
	}
}

func BenchmarkTurn(b *testing.B) {
	var m Memory
	b.ReportAllocs()
	for b.Loop() {
		m.Turn(ten(time.Second, 1), true)
	}
}
