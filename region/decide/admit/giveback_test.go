package admit

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/held"
)

// stored returns what the store counts as used of the limit of account a.
func (l *Limiter) stored(t *testing.T) quantity.Units {
	t.Helper()
	r := l.tenure.Rules()
	_, b, err := r.Locate("minute", "api", request("a").Descriptors)
	suite.Must(t, err)
	found, err := l.store.Inspect(t.Context(), algorithms.Inspect{
		Fence: algorithms.Fence{Epoch: r.Epoch}, Target: r.Target(b, 0)})
	suite.Must(t, err)
	return found.State.Used
}

// sweeps is long enough for a node to look for chunks that are over.
const sweeps = 200 * time.Millisecond

// What a node holds goes back when it is idle, when the document changes, and when the node ends:
// then the store counts what was admitted.
func TestChunksGoBack(t *testing.T) {
	for _, tc := range []struct {
		name string
		ends func(t *testing.T, n *Limiter)
	}{
		{"after idling", func(*testing.T, *Limiter) { time.Sleep(held.Life + sweeps) }},
		{"with another document", func(t *testing.T, n *Limiter) {
			d := documents.Parse(t, 2, here, prefetched,
				"name: new, domain: new, limit: 1, window: 1s")
			if err := n.tenure.Adopt(t.Context(), d); err != nil {
				t.Error(err)
			}
			time.Sleep(sweeps)
		}},
		{"with an exact limit", func(t *testing.T, n *Limiter) {
			d := documents.Parse(t, 2, here, "name: minute, limit: 1000, window: 1m")
			if err := n.tenure.Adopt(t.Context(), d); err != nil {
				t.Error(err)
			}
			time.Sleep(sweeps)
		}},
		{"at the end", func(t *testing.T, n *Limiter) { n.chunks.ReturnAll(t.Context()) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter,
				_ *countedServer) {
				admitted := warm(t, n, request("a"))
				if stored := n.stored(t); stored <= admitted {
					t.Fatalf("%d admitted, %d stored: nothing is held", admitted, stored)
				}
				tc.ends(t, n)
				if stored := n.stored(t); stored != admitted {
					t.Errorf("%d admitted, %d stored", admitted, stored)
				}
				n.wantAccounted(t, 0)
			})
		})
	}
}

// What comes back makes room for those that were denied, also if the document has changed.
func TestGivingBackEndsDenials(t *testing.T) {
	counted(t, here, []string{prefetched}, func(t *testing.T, n *Limiter, _ *countedServer) {
		admitted := warm(t, n, request("a"))
		d := documents.Parse(t, 2, here, prefetched, "name: new, domain: new, limit: 1, window: 1s")
		suite.Must(t, n.tenure.Adopt(t.Context(), d))
		rest := units("a", 1000-admitted)
		if d := n.must(t, rest); d.Allowed {
			t.Fatalf("%+v", d)
		}
		if d := n.must(t, rest); d.Allowed || !d.FromMemory {
			t.Fatalf("%+v", d)
		}
		n.chunks.ReturnOver(t.Context(), false)
		if d := n.must(t, rest); !d.Allowed {
			t.Errorf("%+v", d)
		}
	})
}
