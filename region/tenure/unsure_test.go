package tenure

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/journal"
)

// TestANodeThatKnowsNothingServesNothing: a node that has nothing but its file after the store lost
// its data serves nothing until the other regions have told their documents. A reply that comes too
// late while it starts, another loss, and its own restart change nothing about that.
func TestANodeThatKnowsNothingServesNothing(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	one := documents.Parse(t, 1, regions, "name: l, window: 1s, limit: 100")
	two := documents.Parse(t, 2, regions, "name: l, window: 1s, limit: 200")
	for name, slow := range map[string]func(*lab.Twin){
		"fails": func(s *lab.Twin) { s.FailNext(1) },
		"late":  func(s *lab.Twin) { s.LoseReply(1) },
	} {
		for trip := range 40 {
			now := time.Unix(1_800_000_000, 0)
			clock := func() time.Time { return now }
			server := lab.NewTwin(func() quantity.StoreTime {
				return quantity.StoreTime(now.UnixMicro())
			}, "a")
			start := func(name string, j *journal.Journal) *Tenure {
				way, _ := server.Connect(clock)
				n := of(t, name, one, way, j, clock)
				n.config.Bootstrap = false
				if err := n.Open(t.Context()); err != nil {
					t.Fatal(err)
				}
				now = now.Add(time.Second)
				return n
			}
			want := func(when string, n *Tenure, unsure bool) {
				t.Helper()
				if got := n.Rules().View.Unsure; got != unsure {
					t.Fatalf("round trip %d %s, %s: unsure %v, want %v", trip, name, when, got, unsure)
				}
			}
			fresh := func(name string) (*journal.Journal, *lab.Disk) {
				j, disk, err := journals.New("us", name)
				if err != nil {
					t.Fatal(err)
				}
				return j, disk
			}
			j, disk := fresh("n1")
			server.Spare(trip)
			slow(server)
			n := start("n1", j)
			server.FailNext(0)
			server.LoseReply(0)
			want("it knows its file alone", n, true)
			server.Restart()
			if err := n.OpenOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("another loss", n, true)
			j, err := journals.Open(disk, "us", "n1")
			if err != nil {
				t.Fatal(err)
			}
			n = start("n1", j)
			want("started again", n, true)
			n.Hear("eu", []Told{{Epoch: one.Epoch(), At: 1}})
			n.Review(t.Context())
			want("told", n, false)
			if err := n.Adopt(t.Context(), two); err != nil {
				t.Fatal(err)
			}
			server.Restart()
			if err := n.OpenOnce(t.Context()); err != nil {
				t.Fatal(err)
			}
			want("a loss to a node that knows", n, false)
			j, _ = fresh("n2")
			want("another node", start("n2", j), false)
		}
	}
}
