package dev

import (
	"net/netip"
	"time"

	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/base/invalid"
)

// cutter cuts a region off from another one in the simulated network. It implements operators.Cutter.
type cutter struct {
	network  *network.Network
	own      string
	document *policy.Document
}

// Cut implements operators.Cutter.
func (c cutter) Cut(region, direction string, d time.Duration) ([]netip.Addr, error) {
	if _, known := c.document.RegionIndex(region); !known || region == c.own {
		return nil, invalid.Fieldf("region", "is not another region than %s that runs here", c.own)
	}
	if direction != "in" {
		c.network.Cut(c.own, region, d)
	}
	if direction != "out" {
		c.network.Cut(region, c.own, d)
	}
	return []netip.Addr{c.network.Host(region).IP()}, nil
}

// PacketsLost implements operators.Cutter. Without a cut the simulated network loses packets only if very
// many are on their way.
func (c cutter) PacketsLost() (lost uint64) {
	for _, r := range c.document.Regions {
		if r.Name != c.own {
			lost += c.network.Stats(c.own, r.Name).PacketsDropped +
				c.network.Stats(r.Name, c.own).PacketsDropped
		}
	}
	return lost
}
