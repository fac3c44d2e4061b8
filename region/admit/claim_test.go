package admit

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
)

// A restarted node does not spend its part of a window twice. If it spent of the part before, it
// spends no more, because it does not know how much it spent. Of a bucket and window of which it
// spent nothing it spends the whole part.
func TestALifeSpendsNoPartTwice(t *testing.T) {
	for name, fields := range map[string]string{"local part": "lending_limit: 0.5",
		"reserve": "local_reserve: 0.5"} {
		t.Run(name, func(t *testing.T) {
			d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, "+fields)
			started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
				q, other := request("a"), request("b")
				if got := c.running["us/n1"].fits(t, q, 10); got != 10 {
					t.Fatalf("%d of 10 admitted", got)
				}
				c.running["us/n1"].askWithoutStore(other, false)
				for life := range 2 {
					c.stop("us/n1")
					n := c.start("us/n1", d)
					if got := n.fits(t, q, 1); got != 0 {
						t.Errorf("life %d admits more of what was spent of before", life+2)
					}
				}
				n := c.running["us/n1"]
				if got := n.fits(t, other, 100); got != 50 {
					t.Errorf("%d admitted of a bucket that was only peeked at, want 50", got)
				}
				time.Sleep(time.Minute)
				if got := n.fits(t, q, 100); got != 50 {
					t.Errorf("%d admitted in the next window, want 50", got)
				}
			})
		})
	}
}

// Without a journal to remember it, nothing is spent.
func TestNothingIsSpentThatCannotBeRemembered(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m, lending_limit: 0.5")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		if err := n.journal.Close(); err != nil {
			t.Fatal(err)
		}
		if d := n.askWithoutStore(request("a"), true); d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}
