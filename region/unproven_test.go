package region_test

import (
	"context"
	"crypto/sha256"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	labcluster "github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// madeUp is a gossip member of region eu that answers calls in its name: a far larger limit is open
// there, and it lends all that it is asked for.
type madeUp struct {
	document *policy.Document
	calls    atomic.Int64 // for units, what was lost and documents
}

func (m *madeUp) exchange(_ context.Context, asked exchange.Message) (exchange.Reply, error) {
	m.calls.Add(1)
	r := exchange.Reply{From: "eu", Generation: uint64(time.Now().UnixMilli()), ForGeneration: asked.Generation,
		Documents: []exchange.Acknowledged{{Version: m.document.Version, Digest: m.document.Epoch().Digest, At: 1}}}
	for _, a := range asked.Asks {
		r.Grants = append(r.Grants, exchange.Grant{Cell: a.Cell, Lent: a.Lent, Returned: a.Returned})
	}
	return r, nil
}

func (m *madeUp) recall(context.Context, exchange.Question) (exchange.Testimonies, error) {
	m.calls.Add(1)
	return exchange.Testimonies{From: "eu"}, nil
}

func (m *madeUp) source([sha256.Size]byte) []byte {
	m.calls.Add(1)
	return m.document.Source()
}

// join has it join the others' gossip.
func (m *madeUp) join(t *testing.T, c *cluster) {
	t.Helper()
	host := c.Network.Host("made-up")
	l, err := host.Listen(labcluster.PeerPort)
	suite.Must(t, err)
	s := peer.NewServer(peer.Handlers{Exchange: m.exchange, Recall: m.recall, Document: m.source,
		Store: func(context.Context, peer.Identity, *store.Confirmation) peer.StoreAnswer {
			return peer.StoreAnswer{Node: "eu/made-up"}
		}}, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	c.gossips("eu", "made-up", host.IP())
}

// TestAttackAMadeUpMember: region eu is stopped, and somebody answers for it. Where nothing proves
// who nodes are, us takes neither its document nor its units, and says so. Where something is said
// to prove it, it takes both: so the attack is one.
func TestAttackAMadeUpMember(t *testing.T) {
	const limit = "name: second, window: 1s, on_exhausted: borrow, limit: "
	d, large := documents.Parse(t, 1, halves, limit+"100"), documents.Parse(t, 2, halves, limit+"60000")
	for _, unproven := range []bool{true, false} {
		inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
			c.unproven = unproven
			us := c.start("us/n1", d)
			m := &madeUp{document: large}
			m.join(t, c)
			c.within(time.Minute, "the made-up member to be seen", func() bool { return slices.Contains(us.Members(), "eu/made-up") })
			if !unproven {
				c.within(time.Minute, "its document to be taken", func() bool { return us.Document().Version == 2 })
				if !slices.Contains(c.adopted, "us/n1: 2 from region eu") {
					t.Errorf("told of: %q", c.adopted)
				}
				return
			}
			for range 5 {
				time.Sleep(2 * time.Second)
				nextCell(time.Second)
				if got, last := us.drain(t, request("a"), 200); got != 50 {
					t.Errorf("%d admitted, want the fixed split, 50; then %+v", got, last)
				}
			}
			s := us.Status()
			if s.Version != 1 || m.calls.Load() != 0 || !s.Unproven || !s.Peers[0].Degraded || len(c.adopted) != 0 {
				t.Errorf("after %d calls: %+v; told of: %q", m.calls.Load(), s, c.adopted)
			}
			asks := peer.NewClient(c.Network.Host("made-up").DialContext, nil)
			defer asks.Close()
			asks.SetNodes("us", []string{us.config.PeerAdvertise})
			if _, err := asks.Exchange(t.Context(), "us", exchange.Message{From: "eu", Node: "made-up",
				Documents: []exchange.Acknowledged{{Version: 2, Digest: large.Epoch().Digest, At: 1}}}); err == nil ||
				!strings.Contains(err.Error(), region.ErrUnproven.Error()) {
				t.Errorf("a message is answered: %v", err)
			}
			if _, err := asks.Recall(t.Context(), "us", exchange.Question{From: "us", Node: "n2", Generation: 1 << 50}); err == nil ||
				!strings.Contains(err.Error(), region.ErrUnproven.Error()) {
				t.Errorf("a question is answered: %v", err)
			}
			if err := us.Adopt(t.Context(), large); err != nil || us.Document().Version != 2 {
				t.Errorf("a document that was applied: %v", err)
			}
		})
	}
}

// TestUnprovenTellsTheWindowsEnd: where nothing is taken from other regions, no denial says that
// their units may come.
func TestUnprovenTellsTheWindowsEnd(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: day, window: 24h, limit: 100")
	inBubble(t, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		c.unproven = true
		us := c.start("us/n1", d)
		for range 3 {
			_, got := us.drain(t, request("a"), 60)
			left := time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour))
			if got.Allowed || got.RetryAfter < left-time.Second {
				t.Errorf("%+v, %v before the window's end", got, left)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
