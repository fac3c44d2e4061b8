package process

import (
	"context"
	"net/netip"
	"strings"
)

// relayRegion is added to the third byte of a node's address to get the address of its relay.
const relayRegion = 100

// stand starts a relay for a node that is not configured yet. It sets the relay's address as the
// one that the node advertises, and replaces the seed by the seed's relay.
func (f *Fleet) stand(n *Node, file *nodeFile) error {
	ip := relayFor(n.IP)
	if err := f.Lines.add(n.Region, ip, n.IP); err != nil {
		return err
	}
	seed := netip.MustParseAddrPort(file.seed)
	file.seed = netip.AddrPortFrom(relayFor(seed.Addr()), gossipPort).String()
	settings := []string{`advertise: {peer: "` + netip.AddrPortFrom(ip, peerPort).String() +
		`", gossip: "` +
		netip.AddrPortFrom(ip, gossipPort).String() + `"}`, "chaos: true"}
	for _, line := range file.settings {
		if !strings.HasPrefix(line, "chaos:") {
			settings = append(settings, line)
		}
	}
	file.settings = settings
	return nil
}

// relayFor returns the address of the relay of a node.
func relayFor(node netip.Addr) netip.Addr {
	b := node.As4()
	b[2] += relayRegion
	return netip.AddrFrom4(b)
}

// copied starts a replica of the region's Redis, and a proxy that leads to the primary.
func (r *Region) copied(ctx context.Context, scope Scope) (err error) {
	if r.Replica, err = StartRedis(ctx, scope, RedisConfig{ReplicaOf: r.Redis}); err != nil {
		return err
	}
	r.Way, err = StartProxy(scope, r.Redis.Address)
	return err
}

// Change changes the faults of all ways from some regions to some others, and, unless oneWay, of
// the ways back.
func (f *Fleet) Change(some, others []string, oneWay bool, change func(*Fault)) {
	for way := range ways(some, others, oneWay) {
		f.Lines.Change(way[0], way[1], change)
	}
}

// StatsBetween returns the sum of the counts of the ways that Change would change, since the start
// of the fleet.
func (f *Fleet) StatsBetween(some, others []string, oneWay bool) (all LineStats) {
	for way := range ways(some, others, oneWay) {
		all.plus(f.Lines.StatsOf(way[0], way[1]))
	}
	return all
}

// ways returns the ways between some regions and others, each once.
func ways(some, others []string, oneWay bool) map[[2]string]struct{} {
	all := map[[2]string]struct{}{}
	for _, from := range some {
		for _, to := range others {
			if from == to {
				continue
			}
			all[[2]string{from, to}] = struct{}{}
			if !oneWay {
				all[[2]string{to, from}] = struct{}{}
			}
		}
	}
	return all
}
