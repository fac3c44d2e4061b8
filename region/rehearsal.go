package region

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/door"
	"github.com/quotad/quotad/region/peer"
)

// Cutter cuts a node off from the nodes of another region, for rehearsals of faults. Safe for concurrent use.
type Cutter interface {
	// Cut loses what goes to the nodes of a region ("out"), comes from them ("in"), or "both", for d, in place of what was
	// cut that way before; 0 heals. It returns their addresses. A *FieldError says that there are none to cut.
	Cut(region, direction string, d time.Duration) ([]netip.Addr, error)
	// PacketsLost is how many packets cuts have lost.
	PacketsLost() uint64
}

// cuts are what a node knows of rehearsed cuts.
type cuts struct {
	cutter  atomic.Pointer[Cutter] // nil: the node makes none
	refused door.Seldom            // to be logged
}

// AllowCuts lets whoever may call this node as nodes of other regions do cut it off from other regions. Before it is
// called the node refuses.
func (n *Node) AllowCuts(c Cutter) { n.cuts.cutter.Store(&c) }

// cutOff makes a cut that the node was asked for over its peer port. That somebody tried is worth a warning either way; of
// those that are refused, which whoever reaches the port can have many of, one a minute. All are counted
// (quotad_peer_refused_total{reason="cut"}).
func (n *Node) cutOff(by peer.Caller, c peer.Cut) (peer.CutAnswer, error) {
	cutter := n.cuts.cutter.Load()
	if cutter == nil {
		if unlogged, due := n.cuts.refused.Due(time.Now()); due {
			n.log.Warn("refused a cut that was asked for over the peer port: this node was not started with chaos: true",
				"by", by.String(), "region", c.Region, "direction", c.Direction, "for", c.For.String(), "unlogged", unlogged)
		}
		return peer.CutAnswer{}, peer.ErrNoCuts
	}
	what := "a cut is asked for over the peer port"
	if c.For == 0 {
		what = "a heal of cuts is asked for over the peer port"
	}
	n.log.Warn(what, "by", by.String(), "region", c.Region, "direction", c.Direction, "for", c.For.String())
	all, err := (*cutter).Cut(c.Region, c.Direction, c.For)
	return peer.CutAnswer{Addresses: all, PacketsLost: (*cutter).PacketsLost()}, err
}
