package admit

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/tally"
)

// wantLast fails the test unless the last request on a limit's bucket came out like this just now.
func (l *Limiter) wantLast(t *testing.T, q Request, limit string, admitted bool, why Reason,
	fromMemory bool) {
	t.Helper()
	for _, a := range l.tenure.Rules().Match(asked(q)) {
		if a.Limit.Name != limit {
			continue
		}
		last, known := Last(a)
		want := LastOutcome{At: last.At, Admitted: admitted, Reason: why, FromMemory: fromMemory}
		if ago := time.Since(last.At); !known || last != want || ago < -time.Millisecond || ago > time.Second {
			t.Errorf("%s: last %+v %v, want %+v", limit, last, known, want)
		}
		return
	}
	t.Errorf("no limit %s", limit)
}

// TestUnitsAreAccounted: an admitted request counts for every limit, a denied one for the limit
// that denied, by whatever it was decided; peeks and repeats do not count.
func TestUnitsAreAccounted(t *testing.T) {
	counted(t, hereAndThere, []string{"name: few, limit: 250, window: 1m", // 100 of it are here
		"name: many, key: [account], limit: 1000, window: 1m",
		"name: watched, limit: 250, window: 1m, shadow: true"},
		func(t *testing.T, n *Limiter, s *countedServer) {
			n.must(t, units("a", 90))
			if got, want := n.Fullest()["few"], (Full{0.9, 250, 100, 10}); got != want {
				t.Errorf("the fullest bucket is %+v, want %+v", got, want)
			}
			n.wantLast(t, units("a", 1), "few", true, WithinLimit, false)
			n.must(t, units("a", 20))
			n.wantLast(t, units("a", 1), "few", false, OverLimit, false)
			n.wantLast(t, units("a", 1), "many", true, WithinLimit, false)
			n.must(t, units("a", 20)) // shadow limits: never from memory
			if _, err := n.Peek(t.Context(), units("a", 5)); err != nil {
				t.Error(err)
			}
			once := units("b", 3)
			once.ID = "1"
			n.must(t, once)
			n.must(t, once)
			s.takes.Store(int64(time.Hour)) // it does not answer any more
			n.must(t, units("b", 2))
			n.wantLast(t, units("b", 1), "many", true, StoreFailureLocal, false)

			n.Forget(time.Now())
			if got := n.Fullest(); got["few"].Used != 0.9 || got["many"].Share != 0 {
				t.Errorf("how full buckets were before: %v", got)
			}
			n.Forget(time.Now())
			if got := n.Fullest(); got["few"] != (Full{}) {
				t.Errorf("how full buckets were long before: %v", got)
			}

			want := map[string]LimitUnits{"few": {95, 40}, "many": {95, 0}, "watched": {95, 0}}
			if got := n.UnitsByLimit(); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%v, want %v", got, want)
			}
			hottest, since := n.tenure.Rules().Hottest(time.Now(), 2)
			if ago := time.Since(since); ago < 0 || ago > tally.Period {
				t.Errorf("counted since %s", ago)
			}
			names := map[string]tally.Units{}
			for _, h := range hottest {
				ref, err := policy.ParseBucketID(policy.BucketID(h.ID))
				if err != nil {
					t.Error(err)
				}
				names[ref.Name+fmt.Sprint(ref.Key)] = h.Units
			}
			if len(names) != 2 || names["few[{account a}]"] != (tally.Units{Admitted: 90, Denied: 40}) {
				t.Errorf("%v", names)
			}
		})
}

// TestMemoryIsAccounted: denials from memory, units of chunks and those that clients take count as
// those that the store decides.
func TestMemoryIsAccounted(t *testing.T) {
	counted(t, hereAndThere, []string{prefetched}, func(t *testing.T, n *Limiter, _ *countedServer) {
		var asked, spent quantity.Units
		for range 500 {
			d := n.must(t, request("a"))
			asked++
			if d.FromMemory && d.Allowed {
				spent++
				n.wantLast(t, request("a"), "minute", true, WithinLimit, true)
			}
			time.Sleep(time.Millisecond)
		}
		taken, err := n.Take(t.Context(), Take{Domain: "api",
			Descriptors: map[string]string{"account": "b"}, Units: 10})
		suite.Must(t, err)
		u := n.UnitsByLimit()["minute"]
		if want := float64(asked + taken.Units); spent == 0 || u.Admitted+u.Denied != want {
			t.Errorf("%+v of %d asked and %d taken, %d spent from memory", u, asked, taken.Units, spent)
		}
		before := u.Denied
		for range 2 * deniedFloods {
			n.must(t, units("a", 300))
		}
		n.wantLast(t, request("a"), "minute", false, OverLimit, true)
		if u = n.UnitsByLimit()["minute"]; u.Denied != before+2*deniedFloods*300 {
			t.Errorf("%v denied, before %v", u.Denied, before)
		}
	})
}

// deniedFloods is more requests than ask the store about an exhausted bucket at once.
const deniedFloods = 5
