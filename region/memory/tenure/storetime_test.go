package tenure

import (
	"testing"
	"time"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestTheStoresTimeOutlivesItAndItsNode: a store's clock is ahead, so far that only decisions show
// the store's time. Then the machine starts anew with the store and the node, and the clock is
// right. The store begins no earlier than any time that it gave out before.
func TestTheStoresTimeOutlivesItAndItsNode(t *testing.T) {
	began := time.Unix(1_800_000_000, 0).UnixMicro()
	now, ahead := began, int64(0)
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now + ahead) }, "a")
	clock := func() time.Time { return time.UnixMicro(now) }
	kept, disk, err := journals.New("us", "n1")
	suite.Must(t, err)
	start := func(first bool) *Tenure {
		t.Helper()
		way, _ := server.Connect(clock)
		n := of(t, "n1", documents.Parse(t, 1, alone, "name: a, limit: 1000, window: 1s"), way,
			kept, clock)
		n.config.Bootstrap = first
		suite.Must(t, n.Open(t.Context()))
		return n
	}
	n := start(true)
	ahead = 20 * allocator.Second
	var latest quantity.StoreTime
	for range 7 {
		now += allocator.Second / 2
		d, err := n.decide(t, "a")
		if err != nil || d.Now < latest || d.Now == 0 || !d.Answers[0].Admitted {
			t.Fatalf("%+v, %v", d, err)
		}
		latest = d.Now
	}
	kept, err = journals.Open(disk, "us", "n1")
	suite.Must(t, err)
	server.Restart()
	ahead = 0
	n = start(false)
	if got := n.LostAt(); got < latest {
		t.Errorf("lost at %d, and %d was given out: windows come %v earlier once more",
			got.Add(-began), latest.Add(-began), time.Duration(latest.Sub(got))*time.Microsecond)
	}
	if d, err := n.decide(t, "a"); err != nil || d.Answers[0].Admitted {
		t.Errorf("in a window that was used: %+v, %v", d, err)
	}
}
