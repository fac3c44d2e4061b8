package tenure

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
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
				suite.Must(t, n.Open(t.Context()))
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
				suite.Must(t, err)
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
			suite.Must(t, n.OpenOnce(t.Context()))
			want("another loss", n, true)
			j, err := journals.Open(disk, "us", "n1")
			suite.Must(t, err)
			n = start("n1", j)
			want("started again", n, true)
			n.Hear("eu", []Told{{Epoch: one.Epoch(), At: 1}})
			n.Review(t.Context())
			want("told", n, false)
			suite.Must(t, n.Adopt(t.Context(), two))
			server.Restart()
			suite.Must(t, n.OpenOnce(t.Context()))
			want("a loss to a node that knows", n, false)
			j, _ = fresh("n2")
			want("another node", start("n2", j), false)
		}
	}
}

// TestANewerFileInARegionThatKnowsNothing: eu works under version 1, us loses all it knew and begins
// with version 2, which gives it nine tenths. It has nothing until eu, which reads version 2 from it,
// works under that alone, nor in the window in which eu may have used its old part. So it is for
// another node, and after a start in between.
func TestANewerFileInARegionThatKnowsNothing(t *testing.T) {
	regions := []string{"us: {weight: 1}", "eu: {weight: 1}"}
	const limit = "name: l, window: 10s, limit: 100"
	one := documents.Parse(t, 1, regions, limit)
	two := documents.Parse(t, 2, regions, limit+", weights: {us: 9, eu: 1}")
	now := time.Unix(1_800_000_000, 0)
	began := quantity.StoreTime(now.UnixMicro())
	clock := func() time.Time { return now }
	server := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(now.UnixMicro()) }, "a")
	journal, disk, err := journals.New("us", "n1")
	suite.Must(t, err)
	start := func(name string) *Tenure {
		way, _ := server.Connect(clock)
		n := of(t, name, two, way, journal, clock)
		n.config.Bootstrap = false
		suite.Must(t, n.Open(t.Context()))
		return n
	}
	n := start("n1")
	hear := func(open ...Told) {
		now = now.Add(time.Second)
		if _, err := n.decide(t, "a"); err != nil {
			t.Fatal(err)
		}
		n.Hear("eu", open)
		n.Review(t.Context())
	}
	want := func(when string, unsure bool, serves bool) {
		t.Helper()
		v := n.Rules().View
		if s := v.Standing(&v.Agenda.Newest().Limits[0]); v.Unsure != unsure || s.Returning == serves && !unsure {
			t.Errorf("%s: unsure %v, %+v", when, v.Unsure, s)
		}
	}
	again := func() {
		journal, err = journals.Open(disk, "us", "n1")
		suite.Must(t, err)
		n = start("n1")
	}
	hear(Told{Epoch: one.Epoch(), At: began})
	want("eu has the old one", true, false)
	again()
	hear(Told{Epoch: one.Epoch(), At: began}, Told{Epoch: two.Epoch(), At: began + 12_000_000})
	want("eu has both", false, false)
	again()
	hear(Told{Epoch: two.Epoch(), At: began + 12_000_000})
	want("eu has the new one", false, false)
	again()
	want("started again", false, false)
	journal, _, err = journals.New("us", "n2")
	suite.Must(t, err)
	n = start("n2")
	want("another node", false, false)
	now = now.Add(30 * time.Second)
	hear(Told{Epoch: two.Epoch(), At: began + 12_000_000})
	want("in the window after", false, true)
}
