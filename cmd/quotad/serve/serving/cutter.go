package serving

import (
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/base/link"
)

// cutter makes the cuts that operators ask for. Safe for concurrent use.
type cutter struct {
	own  string // the node's region
	gate *link.Gate
	// where returns the addresses of the nodes of each region, as gossip sees them.
	where func() map[string][]netip.Addr
	log   *slog.Logger

	mu sync.Mutex
	// known holds the addresses that the nodes of a region had when it was cut off. Gossip forgets
	// nodes that it does not hear from, but to heal or renew the cut they must be found again.
	known map[string][]netip.Addr
}

func newCutter(own string, gate *link.Gate, where func() map[string][]netip.Addr,
	log *slog.Logger) *cutter {
	return &cutter{own: own, gate: gate, where: where, log: log, known: map[string][]netip.Addr{}}
}

var directions = map[string]link.Direction{"in": link.In, "out": link.Out, "both": link.Both}

// Cut implements operators.Cutter.
func (c *cutter) Cut(name, direction string, d time.Duration) ([]netip.Addr, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if name == c.own {
		return nil, invalid.Fieldf("region", "is this node's own; name another region")
	}
	where := c.where()
	for _, ip := range where[name] {
		if other := otherAt(where, name, ip); other != "" {
			return nil, invalid.Fieldf("region", "cannot be cut off alone: its nodes and those of %s share the address %s, and a cut tells nodes apart by address; give each node one of its own",
				other, ip)
		}
	}
	// Addresses that have since become another region's are dropped.
	ips := slices.DeleteFunc(c.known[name],
		func(ip netip.Addr) bool { return otherAt(where, name, ip) != "" })
	for _, ip := range where[name] {
		if !slices.Contains(ips, ip) {
			ips = append(ips, ip)
		}
	}
	if len(ips) == 0 {
		return nil, invalid.Fieldf("region",
			"has no node that gossip knows; there are nodes of %s", others(where, c.own))
	}
	c.known[name] = ips
	c.gate.Cut(ips, directions[direction], d)
	if d > 0 {
		c.log.Warn("cut off on demand", "region", name, "direction", direction, "for", show.Span(d),
			"addresses", ips)
	} else {
		c.log.Warn("cut healed on demand", "region", name, "direction", direction)
	}
	return slices.Clone(ips), nil
}

// PacketsLost implements operators.Cutter.
func (c *cutter) PacketsLost() uint64 { return c.gate.Stats().PacketsDropped }

// otherAt returns a region other than name that has a node at an address, or "".
func otherAt(where map[string][]netip.Addr, name string, ip netip.Addr) string {
	for _, other := range slices.Sorted(maps.Keys(where)) {
		if other != name && slices.Contains(where[other], ip) {
			return other
		}
	}
	return ""
}

// others lists the regions except own.
func others(where map[string][]netip.Addr, own string) string {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(where)),
		func(n string) bool { return n == own })
	return show.OrNone(strings.Join(names, ", "))
}
