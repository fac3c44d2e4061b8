package local

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// When the journal holds as many claims on single buckets as it may, it claims the limit's whole
// window. Started again, the node then spends nothing of that limit in that window. Other limits
// and windows are not affected.
func TestALifeSpendsNoPartTwiceOfVeryManyBuckets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all, n := born(t, "name: minute, limit: 100, window: 1m, lending_limit: 0.5",
			"name: other, domain: other, limit: 100, window: 1m, lending_limit: 0.5")
		n.claims.most = 10
		const buckets = 40
		name := func(i int) string { return fmt.Sprintf("account-%d", i) }
		for i := range buckets {
			if got := n.admits(name(i), 3); got != 3 {
				t.Fatalf("bucket %d: %d of 3 admitted", i, got)
			}
		}
		if got := n.journal.Stats().Checkpoints; got != 11 {
			t.Errorf("%d claims in the journal, want 10 and one of the whole window", got)
		}
		for life := range 2 {
			n = all.next(n)
			for i := range buckets + 1 { // one more than was spent of: the node cannot know that
				if got := n.admits(name(i), 1); got != 0 {
					t.Errorf("life %d admits of bucket %d, of whose limit the whole window is claimed", life+2, i)
				}
			}
		}
		other := n.charges("other", map[string]string{"account": name(0)}, 50)
		if s := n.Spend(other, true); !s.Admitted || s.Left != 0 {
			t.Errorf("50 of another limit: %+v", s)
		}
		time.Sleep(time.Minute)
		if got := n.admits(name(0), 100); got != 50 {
			t.Errorf("%d admitted in the next window, want 50", got)
		}
	})
}

// A life that claims a whole window still spends nothing of buckets that an earlier life claimed
// one by one. Claims that have ended make room for others.
func TestWholeClaimsKeepThoseOfBefore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all, n := born(t, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")
		n.admits("before", 10)
		n = all.next(n)
		n.claims.most = 1
		for _, account := range []string{"a", "b", "c"} {
			if got := n.admits(account, 100); got != 50 {
				t.Errorf("%d admitted of %s, want 50", got, account)
			}
		}
		if got := n.admits("before", 1); got != 0 {
			t.Error("admitted what an earlier life may have spent")
		}
		claims := n.journal.Stats().Checkpoints
		time.Sleep(2*time.Hour + time.Minute)
		if _, _, err := n.journal.Prune(quantity.StoreTime(time.Now().UnixMicro())); err != nil {
			t.Error(err)
		}
		if n.claims.full(time.Now(), 0) {
			t.Error("claims that ended long ago leave no room for others")
		}
		n.admits("d", 1)
		if got := n.journal.Stats().Checkpoints; got > claims {
			t.Errorf("%d claims in the journal, before %d: those that ended were not pruned", got,
				claims)
		}
	})
}

// A restarted node does not spend its part of a window twice. If it spent of the part before, it
// spends no more, because it does not know how much it spent. Of a bucket and window of which it
// spent nothing it spends the whole part.
func TestALifeSpendsNoPartTwice(t *testing.T) {
	for name, fields := range map[string]string{"local part": "lending_limit: 0.5",
		"reserve": "local_reserve: 0.5"} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				all, n := born(t, "name: minute, limit: 100, window: 1m, "+fields)
				if got := n.admits("a", 10); got != 10 {
					t.Fatalf("%d of 10 admitted", got)
				}
				n.Spend(n.charges("api", map[string]string{"account": "b"}, 1), false)
				for life := range 2 {
					n = all.next(n)
					if got := n.admits("a", 1); got != 0 {
						t.Errorf("life %d admits more of what was spent of before", life+2)
					}
				}
				if got := n.admits("b", 100); got != 50 {
					t.Errorf("%d admitted of a bucket that was only peeked at, want 50", got)
				}
				time.Sleep(time.Minute)
				if got := n.admits("a", 100); got != 50 {
					t.Errorf("%d admitted in the next window, want 50", got)
				}
			})
		})
	}
}

// Without a journal to remember it, nothing is spent.
func TestNothingIsSpentThatCannotBeRemembered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		_, n := born(t, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")
		suite.Must(t, n.journal.Close())
		if d := n.asks("a", 1); d.Admitted {
			t.Errorf("%+v", d)
		}
	})
}

// A charge that is kept claims nothing. What is spent after it is claimed before, so that it is not spent
// again in the next life. The kept charge takes its part, and nothing of a reserve.
func TestAKeptChargeClaimsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		all, n := born(t, "name: minute, limit: 100, window: 1m, lending_limit: 0.5, charge: always")
		charge := n.charges("api", map[string]string{"account": "a"}, 20)[0]
		if s, kept := n.Keep(charge); !kept || !s.Admitted || s.Left != 30 {
			t.Errorf("a charge of 20: %+v, kept %v", s, kept)
		}
		if got := n.admits("a", 100); got != 30 {
			t.Errorf("%d admitted beside it, want 30", got)
		}
		if s, _ := n.Keep(charge); s.Admitted || s.Owed != 20 {
			t.Errorf("20 more: %+v", s)
		}
		if got := n.Status().Unbooked; got != 70 {
			t.Errorf("%d are to be booked, want 70", got)
		}
		n = all.next(n)
		if got := n.admits("a", 1); got != 0 {
			t.Errorf("the next life spends again: %d", got)
		}
		if s, kept := n.Keep(charge); !kept || s.Admitted || s.Owed != 20 {
			t.Errorf("a charge of 20 in the next life, of whose part nothing is known: %+v, kept %v", s, kept)
		}
	})
}
