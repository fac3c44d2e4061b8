package main

import (
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/peer"
	"github.com/quotad/quotad/region/store"
)

// complete fills in what depends on other settings, and says what is missing or does not go together.
func (c *nodeConfig) complete() []error {
	var errs []error
	for _, path := range []string{"region", "data_dir", "policy"} {
		if _, given := c.places[path]; !given {
			errs = append(errs, fmt.Errorf("%s: missing; %s", path, find(path).anywhere()))
		}
	}
	errs = append(errs, c.chooseRedis(), c.nameNode())
	errs = append(errs, c.together("peer_tls.cert", "peer_tls.key", "peer_tls.ca"), c.together("redis.tls.cert", "redis.tls.key"), c.checkRedisTLS())
	if c.peerTLS == (peer.Files{}) {
		errs = append(errs, c.checkListener("listen.peer", c.listen.peer, "peer_tls", "calls between regions are neither encrypted nor authenticated"))
	}
	if c.gossipKeys == nil {
		errs = append(errs, c.checkListener("listen.gossip", c.listen.gossip, "gossip_keys", "gossip can be answered by anyone"))
	}
	errs = append(errs, c.checkAdvertised("peer", c.listen.peer, c.advertise.peer))
	errs = append(errs, c.checkAdvertised("gossip", c.listen.gossip, c.advertise.gossip))
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// find returns the setting of a path.
func find(path string) setting {
	return settings[slices.IndexFunc(settings, func(s setting) bool { return s.path == path })]
}

// chooseRedis lets the higher layer win between an embedded Redis and one of a URL.
func (c *nodeConfig) chooseRedis() error {
	url, embedded := c.places["redis.url"], c.places["redis.embedded"]
	switch {
	case !c.embedded && c.redisURL == "":
		return fmt.Errorf("redis: missing; %s (or redis.embedded, to try quotad out)", find("redis.url").anywhere())
	case !c.embedded || c.redisURL == "":
		return nil
	case url.layer == embedded.layer:
		return embedded.fail("redis.url is given as well", "keep one of the two")
	}
	c.embedded = embedded.layer > url.layer
	return nil
}

// nameNode takes the host's name if the node was given none.
func (c *nodeConfig) nameNode() error {
	if c.node != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("node: the host has no name to take (%w); %s", err, find("node").anywhere())
	}
	return readName(&c.node, value{text: host, place: place{name: "node (the host name)"}})
}

// checkListener refuses what others could reach unprotected, unless the operator says that it is meant.
func (c *nodeConfig) checkListener(path string, a netip.AddrPort, guard, danger string) error {
	if c.insecure || a.Addr().IsLoopback() {
		return nil
	}
	return c.places[path].fail(
		fmt.Sprintf("%s is not on loopback, and without %s %s", a, guard, danger),
		fmt.Sprintf("set %s, listen on 127.0.0.1, or give --insecure if only quotad can reach it, as on a private network", guard))
}

// together asks for all of these settings, or none.
func (c *nodeConfig) together(paths ...string) error {
	var given, missing []string
	for _, path := range paths {
		if _, ok := c.places[path]; ok {
			given = append(given, path)
		} else {
			missing = append(missing, path)
		}
	}
	if len(given) == 0 || len(missing) == 0 {
		return nil
	}
	return c.places[given[0]].fail("of no use without "+strings.Join(missing, " and "), find(missing[0]).anywhere())
}

// checkRedisTLS asks for a Redis with TLS where certificates for it are given.
func (c *nodeConfig) checkRedisTLS() error {
	at, err := store.ParseURL(c.redisURL)
	if c.redisTLS == struct{ ca, cert, key string }{} || c.embedded || err != nil || at.Encrypted() {
		return nil
	}
	for _, path := range []string{"redis.tls.ca", "redis.tls.cert", "redis.tls.key"} {
		if p, given := c.places[path]; given {
			return p.fail("redis.url is one without TLS", "begin it with rediss, or remove redis.tls")
		}
	}
	return nil
}

// checkAdvertised asks for an address that others can call, where the one listened on is none.
func (c *nodeConfig) checkAdvertised(what string, listen netip.AddrPort, advertise string) error {
	if advertise != "" || !listen.Addr().IsUnspecified() {
		return nil
	}
	return c.places["listen."+what].fail(
		fmt.Sprintf("%s means every address of this machine, so other nodes cannot be told which one to call", listen),
		find("advertise."+what).anywhere())
}

// checkRegion asks that the document has the node's region. It is asked before anything is written under that name.
func (c *nodeConfig) checkRegion(d *policy.Document) error {
	if _, known := d.RegionIndex(c.region); known {
		return nil
	}
	names := make([]string, len(d.Regions))
	for i, r := range d.Regions {
		names[i] = r.Name
	}
	return exit.Usage(c.places["region"].fail(
		fmt.Sprintf("%s has no region %q, only %s", c.policy, c.region, strings.Join(names, ", ")),
		"correct the name, or add the region to the document"))
}

// warnings are what an operator should know before the node serves.
func (c *nodeConfig) warnings() []string {
	var all []string
	if c.embedded {
		all = append(all, "the embedded Redis keeps nothing and is slow: not for production; set redis.url")
	}
	if c.gossipKeys == nil {
		all = append(all, "gossip is in plain text, open to anyone who reaches its port; set gossip_keys")
	}
	if c.peerTLS == (peer.Files{}) && !c.listen.peer.Addr().IsLoopback() {
		all = append(all, "calls between regions are in plain text and trusted; set peer_tls, or let only quotad reach "+c.listen.peer.String())
	}
	for _, api := range []netip.AddrPort{c.listen.grpc, c.listen.http} {
		if !api.Addr().IsLoopback() {
			all = append(all, "the API has neither TLS nor authentication; let only your services reach "+api.String())
		}
	}
	if c.chaos {
		all = append(all, "chaos is on: whoever reaches the HTTP API or the peer port can cut this node off from other regions; not for production")
	}
	if len(c.seeds) == 0 {
		all = append(all, "no seeds: the node waits to be found by others; set seeds unless it is the first")
	}
	return all
}
