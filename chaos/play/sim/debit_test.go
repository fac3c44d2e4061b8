//go:build !race

package sim

import (
	"strings"
	"testing"
)

// TestMatesLendSoonAfterALoss: a region of two nodes loses its store, and both work under a new
// generation. Five seconds later the node that was asked by the other lends again, because a
// question of the generation under which a node already works must not fence it.
func TestMatesLendSoonAfterALoss(t *testing.T) {
	p := lending(pair(2, "algorithm: fixed_window, limit: 1000, window: 3600s", nil,
		at(0, Stick, 40, on(1)), at(0, Steady, 40, of(1)), at(3, Steady, 1, of(0)),
		at(12, Flush, 0), at(12.5, Steady, 2, of(0))))
	for i := range p.Acts {
		if p.Acts[i].Do == Steady {
			p.Acts[i].Amount, p.Acts[i].Cost = 30_000, 1 // r1 has used its entitlement after 17 s
		}
	}
	o, err := Trace(p, 1<<20)
	if err != nil || o.Broken != nil {
		t.Fatal(err, o.Broken)
	}
	lends := map[string]bool{}
	for _, line := range strings.Split(o.Timeline, "\n") {
		fields := strings.Fields(line)
		if len(fields) < 4 || fields[2] != "debit" || fields[0] < "17" ||
			len(fields[0]) != len("17.000000") {
			continue
		}
		if !strings.Contains(line, ": ok, lent") {
			t.Errorf("five seconds after the loss: %s", line)
		}
		lends[strings.TrimSuffix(fields[1], ":")] = true
	}
	if !lends["r0/n1"] {
		t.Errorf("r0/n1, which r0/n2 asked, does not lend: %v", lends)
	}
}

// TestTheTimeOfALongBucketDoesNotFall: the clock of a store steps back by 20 minutes. Then a bucket
// with which a generation began is deleted. The store's time must stay where it was, and so must
// what was used.
func TestTheTimeOfALongBucketDoesNotFall(t *testing.T) {
	p := pair(1, "algorithm: fixed_window, limit: 1000, window: 600s",
		[][2]int64{{2, 10}, {20, 30}},
		at(12, ClockStep, 31, by(-1200)), at(15, Delete, 0))
	o, err := Run(p)
	if err != nil || o.Broken != nil {
		t.Fatal(err, o.Broken)
	}
	if o.Counts.Admitted < 900 {
		t.Errorf("%d admitted: the test shows nothing", o.Counts.Admitted)
	}
}
