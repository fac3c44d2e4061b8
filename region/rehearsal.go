package region

import (
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/region/base/door"
	"github.com/quotad/quotad/region/trade/peer"
)

// Cutter cuts a node off from the nodes of another region, for rehearsals of faults. Safe for
// concurrent use.
type Cutter interface {
	// Cut loses what goes to the nodes of a region ("out"), comes from them ("in"), or "both", for
	// d. It replaces an earlier cut in the same direction. A d of 0 heals. Cut returns the
	// addresses of the nodes. A *FieldError says that there are none to cut, another error that the
	// caller may not cut.
	Cut(by peer.Caller, region, direction string, d time.Duration) ([]netip.Addr, error)
	// PacketsLost returns how many packets cuts have lost.
	PacketsLost() uint64
}

// cuts is what a node knows of rehearsed cuts.
type cuts struct {
	cutter  atomic.Pointer[Cutter] // nil: the node refuses cuts
	refused door.Seldom            // limits the log of refused cuts
}

// AllowCuts allows nodes of other regions to have this node cut off from other regions, by calls to
// its peer port. Without it the node refuses them.
func (n *Node) AllowCuts(c Cutter) { n.cuts.cutter.Store(&c) }

// cutOff makes a cut that was asked for over the peer port, and logs it as a warning. If the node
// does not allow cuts it refuses. A caller that reaches the port can cause many refusals, so at
// most one refusal a minute is logged. All are counted (quotad_peer_refused_total{reason="cut"}).
func (n *Node) cutOff(by peer.Caller, c peer.Cut) (peer.CutAnswer, error) {
	cutter := n.cuts.cutter.Load()
	if cutter == nil {
		if unlogged, due := n.cuts.refused.Due(time.Now()); due {
			n.log.Warn("refused a cut that was asked for over the peer port: this node was not started with chaos: true",
				"by", by.String(), "region", c.Region, "direction", c.Direction, "for",
				c.For.String(), "unlogged", unlogged)
		}
		return peer.CutAnswer{}, peer.ErrNoCuts
	}
	asked := []any{"by", by.String(), "region", c.Region, "direction", c.Direction, "for",
		c.For.String()}
	if c.For == 0 {
		n.log.Warn("a heal of cuts is asked for over the peer port", asked...)
	} else {
		n.log.Warn("a cut is asked for over the peer port", asked...)
	}
	all, err := (*cutter).Cut(by, c.Region, c.Direction, c.For)
	return peer.CutAnswer{Addresses: all, PacketsLost: (*cutter).PacketsLost()}, err
}
