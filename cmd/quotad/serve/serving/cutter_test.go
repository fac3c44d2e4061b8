package serving

import (
	"log/slog"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/region/base/link"
)

// addresses reads IP addresses, separated by blanks.
func addresses(text string) (all []netip.Addr) {
	for _, one := range strings.Fields(text) {
		all = append(all, netip.MustParseAddr(one))
	}
	return all
}

func TestCutter(t *testing.T) {
	where := map[string][]netip.Addr{
		"us": addresses("127.0.0.11"),
		"eu": addresses("127.0.1.11 127.0.1.12"),
		"ap": addresses("127.0.2.11"),
		"sa": addresses("127.0.3.11 127.0.2.11"),
	}
	gate := link.NewGate()
	defer gate.Heal()
	c := newCutter("us", gate, func() map[string][]netip.Addr { return where },
		slog.New(slog.DiscardHandler))
	cut := func(ip string,
		way link.Direction) bool {
		return gate.IsCut(netip.MustParseAddr(ip), way)
	}
	for _, refused := range []struct{ region, why string }{
		{"us", "is this node's own"},
		{"ap", "its nodes and those of sa share the address 127.0.2.11"},
		{"af", "has no node that gossip knows; there are nodes of ap, eu, sa"},
	} {
		if _, err := c.Cut(refused.region, "both", time.Minute); err == nil ||
			!strings.Contains(err.Error(), refused.why) {
			t.Errorf("cut %s: %v, want %q", refused.region, err, refused.why)
		}
	}
	if ips, err := c.Cut("eu", "in", time.Minute); err != nil || len(ips) != 2 {
		t.Fatal(ips, err)
	}
	if !cut("127.0.1.11", link.In) || !cut("127.0.1.12", link.In) || cut("127.0.1.11", link.Out) ||
		cut("127.0.2.11", link.Both) {
		t.Error("not exactly what comes from eu is cut")
	}
	// Gossip no longer sees it, and forgets it.
	delete(where, "eu")
	where["ap"] = addresses("127.0.1.12")
	if ips, err := c.Cut("eu", "both", time.Minute); err != nil || len(ips) != 1 ||
		!cut("127.0.1.11", link.Out) {
		t.Errorf("a region that is cut off cannot be cut again: %v, %v", ips, err)
	}
	if _, err := c.Cut("eu", "both", 0); err != nil || cut("127.0.1.11", link.Both) {
		t.Errorf("a region that gossip misses is not healed: %v", err)
	}
}
