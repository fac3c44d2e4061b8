package oracle

import (
	"testing"
	"time"
)

// TestClasses: a request of a class is admitted only while it and what its region admitted fit into
// the class's part of the share, whoever admitted the rest and however much others hold.
func TestClasses(t *testing.T) {
	const batch, second = 600_000, 1_000_000
	type admitted struct {
		region           string
		at, units, share int64
		part             int64
		elsewhere        bool
		wrong            bool
	}
	for name, tc := range map[string]struct {
		algorithm string
		all       []admitted
	}{
		"a window": {"fixed_window", []admitted{
			{"eu", 0, 5, 10, batch, false, false}, {"eu", 1, 1, 10, batch, false, false},
			{"eu", 2, 4, 10, 0, false, false}, {"eu", 3, 1, 10, batch, false, true},
			{"us", 3, 6, 10, batch, false, false}, {"eu", 10*second + 1, 6, 10, batch, false, false}}},
		"a window whose share became less": {"fixed_window", []admitted{
			{"eu", 0, 5, 10, batch, false, false}, {"eu", 1, 1, 9, batch, false, true}}},
		"what was admitted without the store": {"fixed_window", []admitted{
			{"eu", 0, 6, 0, batch, true, false}, {"eu", 1, 6, 10, batch, false, false}}},
		"all may use all": {"fixed_window", []admitted{
			{"eu", 0, 10, 10, 1_000_000, false, false}}},
		"an answer that comes late": {"fixed_window", []admitted{
			{"eu", 5, 4, 10, 0, false, false}, {"eu", 1, 6, 10, batch, false, false}}},
		"a log": {"sliding_window_log", []admitted{
			{"eu", 0, 5, 10, batch, false, false}, {"eu", 9 * second, 1, 10, batch, false, false},
			{"eu", 9*second + 1, 1, 10, batch, false, true}, {"eu", 10 * second, 4, 10, batch, false, false}}},
		"a counter": {"sliding_window_counter", []admitted{
			{"eu", 0, 6, 10, batch, false, false}, {"eu", 15 * second, 3, 10, batch, false, false},
			{"eu", 15*second + 1, 1, 10, batch, false, true}}},
	} {
		t.Run(name, func(t *testing.T) {
			l := Limit{Limit: 1000, Window: 10 * time.Second, Algorithm: tc.algorithm}
			j := New(l)
			for i, a := range tc.all {
				before := j.exceeded
				at := time.UnixMicro(a.at)
				j.Record(Answer{Bucket: "b", Region: a.region, Node: "n", Sequence: uint64(i + 1), Cost: a.units, Outcome: Admitted,
					Cell: l.CellOf(a.at), At: a.at, Sent: at, Seen: at, Share: a.share, Part: a.part, Elsewhere: a.elsewhere})
				if got := j.exceeded > before; got != a.wrong {
					t.Errorf("answer %d: accused %v", i+1, got)
				}
			}
			if v := j.Verdict(); v.Holds() == (v.ClassesOver > 0) {
				t.Errorf("%v holds: %v", v, v.Holds())
			}
		})
	}
}
