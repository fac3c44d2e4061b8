package region

import (
	"log/slog"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/region/journal"
)

// TestTheStoresTimeOutlivesItAndItsNode: a store's clock is ahead, so far that the store's time is never shown but by decisions.
// Then the machine that it is on is started anew with its node, and the clock is right. The store begins no earlier
// than any time that it gave out.
func TestTheStoresTimeOutlivesItAndItsNode(t *testing.T) {
	began := time.Unix(1_800_000_000, 0).UnixMicro()
	now, ahead := began, int64(0)
	server := lab.NewTwin(func() int64 { return now + ahead }, "a")
	clock := func() time.Time { return time.UnixMicro(now) }
	disk, owner := lab.NewDisk(), journal.Options{Region: "us", Node: "n1", Direct: true}
	if err := journal.Format(disk, owner); err != nil {
		t.Fatal(err)
	}
	start := func(first bool) *Stepped {
		t.Helper()
		way, _ := server.Connect(clock)
		kept, err := journal.On(disk, "in memory", owner)
		if err != nil {
			t.Fatal(err)
		}
		s, err := NewStepped(Config{Region: "us", Node: "n1", Nodes: 1, Bootstrap: first, Journal: kept, Now: clock,
			Policy: document(t, 1, alone, "name: a, limit: 1000, window: 1s"), Store: way, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	n := start(true)
	ahead = 20 * second
	var latest int64
	for range 7 {
		now += second / 2
		d, _, err := n.Check(request("a"))
		if err != nil || d.At < latest || d.At == 0 {
			t.Fatalf("%+v, %v", d, err)
		}
		latest = d.At
	}
	server.Restart()
	ahead = 0
	n = start(false)
	if got := n.node.lostAt.Load(); got < latest {
		t.Errorf("lost at %d, and %d was given out: windows come %v earlier once more", got-began, latest-began, time.Duration(latest-got)*time.Microsecond)
	}
	if d, _, err := n.Check(request("a")); err != nil || d.Allowed {
		t.Errorf("in a window that was used: %+v, %v", d, err)
	}
}
