package rights

import (
	"log/slog"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/quantity"
)

// spreads returns what spreads hints in a region of its own, by the gossip of a host of the
// region's name.
func spreads(t *testing.T, network *network.Network, region, seed string) *Engine {
	t.Helper()
	const port = 7946
	host := network.Host(region)
	packets, err := host.ListenPacket(port)
	streams, err2 := host.Listen(port)
	suite.Must(t, err, err2)
	e := &Engine{config: Config{Region: region, Node: "n1", Log: slog.New(slog.DiscardHandler)},
		hints: newHints(region, "n1", 1, time.Now, func(exchange.Hint) {})}
	g, err := gossip.Start(gossip.Config{Name: region + "/n1", Packets: packets, Streams: streams,
		Dial:      host.DialContext,
		Advertise: netip.AddrPortFrom(host.IP(), port),
		Seeds:     []string{netip.AddrPortFrom(network.Host(seed).IP(), port).String()},
		State:     e.hints})
	suite.Must(t, err)
	t.Cleanup(func() { _ = g.Close() })
	for begun := time.Now(); region != seed &&
		len(g.Members()) < 2; time.Sleep(20 * time.Millisecond) {
		if time.Since(begun) > 15*time.Second {
			t.Fatalf("%s finds nobody", region)
		}
	}
	e.config.Broadcast = g.Broadcast
	return e
}

// TestHintsOfOneBucketDoNotDisplaceEachOther: three nodes send hints on one bucket, one shortly
// after the other. Each passes on what it hears from the others. That must not replace the hint
// that it has to send itself.
func TestHintsOfOneBucketDoNotDisplaceEachOther(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := network.New()
		t.Cleanup(func() { _ = network.Close() })
		regions := []string{"us", "eu", "ap"}
		for _, region := range regions {
			network.Host(region)
		}
		network.SetDelayAll(40 * time.Millisecond)
		var all []*Engine
		for _, region := range regions {
			all = append(all, spreads(t, network, region, "us"))
		}
		time.Sleep(2 * time.Second)
		for round := range quantity.MilliRate(20) {
			for _, e := range all {
				e.broadcast(exchange.Hint{Region: e.config.Region, Node: "n1", Bucket: "b",
					Rate: round + 1})
				time.Sleep(30 * time.Millisecond)
			}
			// Not a multiple of the gossip interval; push/pull takes seconds.
			time.Sleep(530 * time.Millisecond)
			for _, e := range all {
				e.hints.mu.Lock()
				var heard []string
				for key, kept := range e.hints.known {
					if key.bucket == "b" && quantity.MilliRate(kept.hint.GetRateMilli()) == round+
						1 {
						heard = append(heard, key.region)
					}
				}
				e.hints.mu.Unlock()
				slices.Sort(heard)
				if !slices.Equal(heard, []string{"ap", "eu", "us"}) {
					t.Fatalf("round %d: %s has heard %v", round, e.config.Region, heard)
				}
			}
		}
	})
}
