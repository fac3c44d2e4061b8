package nodeconfig

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// Validate fills in settings that depend on others, and returns an error with its remedy for each
// setting that is missing or contradicts another.
func (c *Config) Validate() []error {
	errs := []error{
		c.require("region"), c.require("data_dir"), c.require("policy"),
		c.chooseRedis(), c.nameNode(),
		c.together("peer_tls.cert", "peer_tls.key", "peer_tls.ca"),
		c.together("redis.tls.cert", "redis.tls.key"),
		c.checkRedisTLS(),
		c.together("api_tls.cert", "api_tls.key"), c.needs("api_tls.ca", "api_tls.cert"),
		c.together("admin_tls.cert", "admin_tls.key"), c.needs("admin_tls.ca", "admin_tls.cert"),
		c.checkListener("listen.peer", c.Listen.Peer, c.PeerTLS != (peer.Files{}) || c.Insecure.Peer,
			"peer_tls", "calls between regions are neither encrypted nor authenticated", "peer"),
		c.checkListener("listen.gossip", c.Listen.Gossip, c.GossipKeys != nil || c.Insecure.Gossip,
			"gossip_keys", "gossip can be answered by anyone", "gossip"),
		c.checkCallers("listen.grpc", c.Listen.GRPC, c.APITLS, c.Insecure.API, "api"),
		c.checkCallers("listen.http", c.Listen.HTTP, c.APITLS, c.Insecure.API, "api"),
		c.checkCallers("listen.admin", c.Listen.Admin, c.AdminTLS, c.Insecure.Admin, "admin"),
		c.checkAdvertised("peer", c.Listen.Peer, c.Advertise.Peer),
		c.checkAdvertised("gossip", c.Listen.Gossip, c.Advertise.Gossip),
		c.needs("traces.ca", "traces.endpoint"), c.checkTraces(),
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

func (c *Config) require(path string) error {
	if _, given := c.given[path]; given {
		return nil
	}
	return fmt.Errorf("%s: missing; %s", path, anywhere(path))
}

// chooseRedis chooses between an embedded Redis and one with a URL if both are given. The one of
// the higher layer wins.
func (c *Config) chooseRedis() error {
	url, embedded := c.given["redis.url"], c.given["redis.embedded"]
	switch {
	case !c.Redis.Embedded && c.Redis.URL == "":
		return fmt.Errorf("redis: missing; %s (or redis.embedded, to try quotad out)",
			anywhere("redis.url"))
	case !c.Redis.Embedded || c.Redis.URL == "":
		return nil
	case url.layer == embedded.layer:
		return embedded.fail("redis.url is given as well", "keep one of the two")
	}
	c.Redis.Embedded = embedded.layer > url.layer
	return nil
}

// nameNode gives the node the host's name if it has none.
func (c *Config) nameNode() (err error) {
	if c.Node != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("node: the host has no name to take (%w); %s", err, anywhere("node"))
	}
	c.Node, err = name(value{text: host, place: place{name: "node (the host name)"}})
	return err
}

// together returns an error if some but not all of the settings are given.
func (c *Config) together(paths ...string) error {
	var given, missing []string
	for _, path := range paths {
		if _, ok := c.given[path]; ok {
			given = append(given, path)
		} else {
			missing = append(missing, path)
		}
	}
	if len(given) == 0 || len(missing) == 0 {
		return nil
	}
	return c.Fail(given[0], "of no use without "+strings.Join(missing, " and "),
		anywhere(missing[0]))
}

// needs returns an error if a setting is given without one that it is of no use without.
func (c *Config) needs(path, other string) error {
	_, given := c.given[path]
	if _, has := c.given[other]; !given || has {
		return nil
	}
	return c.Fail(path, "of no use without "+other, anywhere(other))
}

// checkRedisTLS returns an error if certificates for Redis are given and its URL has no TLS.
func (c *Config) checkRedisTLS() error {
	at, err := store.ParseURL(c.Redis.URL)
	if c.Redis.Embedded || err != nil || at.Encrypted() {
		return nil
	}
	for _, path := range []string{"redis.tls.ca", "redis.tls.cert", "redis.tls.key"} {
		if _, given := c.given[path]; given {
			return c.Fail(path, "redis.url is one without TLS",
				"begin it with rediss, or remove redis.tls")
		}
	}
	return nil
}

// checkListener returns an error if others could reach the listener unprotected. guarded says that
// they cannot, or that the operator allows it (insecure).
func (c *Config) checkListener(
	path string, at netip.AddrPort, guarded bool, guard, danger, name string,
) error {
	if guarded || at.Addr().IsLoopback() {
		return nil
	}
	return c.Fail(path,
		fmt.Sprintf("%s is not on loopback, and without %s %s", at, guard, danger),
		fmt.Sprintf("set %s, listen on 127.0.0.1, or give --insecure=%s if only quotad can reach it, "+
			"as on a private network", guard, name))
}

// checkCallers returns an error if callers beyond loopback could reach a listener that does not ask
// who they are, or to which they would send tokens in plain text.
func (c *Config) checkCallers(
	path string, at netip.AddrPort, tls peer.Files, allowed bool, name string,
) error {
	if c.asks(tls) || allowed || at.Addr().IsLoopback() {
		return nil
	}
	missing, danger := name+"_tls", "tokens, decisions and keys go in plain text"
	if c.Roles == "" {
		missing, danger = fmt.Sprintf("%s_tls and roles", name), "anybody may call it"
	}
	return c.Fail(path, fmt.Sprintf("%s is not on loopback, and without %s %s", at, missing, danger),
		fmt.Sprintf("set %s, listen on 127.0.0.1, or give --insecure=%s if only your own services "+
			"can reach it, as on a private network", missing, name))
}

// checkAdvertised requires an address that others can call if the node listens on all addresses.
func (c *Config) checkAdvertised(what string, listen netip.AddrPort, advertise string) error {
	if advertise != "" || !listen.Addr().IsUnspecified() {
		return nil
	}
	return c.Fail("listen."+what, fmt.Sprintf("%s means every address of this machine, "+
		"so other nodes cannot be told which one to call", listen), anywhere("advertise."+what))
}

// checkTraces returns an error if spans would go in plain text beyond loopback. Of names only
// localhost is on loopback, as for listeners.
func (c *Config) checkTraces() error {
	host, _, err := net.SplitHostPort(c.Traces.Endpoint)
	if c.Traces.CA != "" || err != nil || host == "localhost" {
		return nil
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() {
		return nil
	}
	return c.Fail("traces.endpoint", fmt.Sprintf("%.70q is not on loopback, and without traces.ca "+
		"spans go in plain text to whoever answers there", c.Traces.Endpoint),
		"set traces.ca, or run a collector on this machine that passes them on")
}

// CheckRegion returns an error if the document neither has nor removes the node's region. Call it before
// anything is written under that name.
func (c *Config) CheckRegion(d *policy.Document) error {
	if _, known := d.RegionIndex(c.Region); known || d.Removes(c.Region) {
		return nil
	}
	return c.Fail("region", fmt.Sprintf("%s has no region %q, only %s", c.Policy, c.Region,
		strings.Join(d.RegionNames(), ", ")),
		"correct the name, or add the region to the document")
}

// asks reports whether a port with these certificates asks over TLS who calls.
func (c *Config) asks(tls peer.Files) bool {
	return tls.Cert != "" && (c.Roles != "" || tls.CA != "")
}

// Unproven says that anybody beyond this machine could pass for another node: nothing proves who
// gossips, nor who calls.
func (c *Config) Unproven() bool {
	return c.GossipKeys == nil && c.PeerTLS == (peer.Files{}) &&
		!(c.Listen.Peer.Addr().IsLoopback() && c.Listen.Gossip.Addr().IsLoopback())
}

// Warnings returns what an operator should know before the node serves.
func (c *Config) Warnings() []string {
	var all []string
	warn := func(when bool, text string) {
		if when {
			all = append(all, text)
		}
	}
	warn(c.Redis.Embedded,
		"the embedded Redis keeps nothing and is slow: not for production; set redis.url")
	warn(c.Unproven(), "anybody could pass for another node, so every region keeps its fixed split, takes documents "+
		"from files and apply alone, and asks nobody after a loss; set gossip_keys or peer_tls")
	warn(c.GossipKeys == nil,
		"gossip is in plain text, open to anyone who reaches its port; set gossip_keys")
	warn(c.PeerTLS == (peer.Files{}) && !c.Listen.Peer.Addr().IsLoopback(),
		"calls between regions are in plain text and trusted; set peer_tls, or let only quotad reach "+
			c.Listen.Peer.String())
	for _, api := range []netip.AddrPort{c.Listen.GRPC, c.Listen.HTTP} {
		warn(c.Insecure.API && !api.Addr().IsLoopback() && !c.asks(c.APITLS),
			"the API is insecure: whoever reaches "+api.String()+
				" may spend every key's units, unless a proxy asks who calls; set api_tls and roles")
	}
	warn(c.Insecure.Admin && !c.Listen.Admin.Addr().IsLoopback() && !c.asks(c.AdminTLS),
		"the admin listener is insecure: whoever reaches "+c.Listen.Admin.String()+
			" may reset limits; set admin_tls and roles")
	warn(c.APITLS.CA != "" && c.APITLS.CA == c.PeerTLS.CA,
		"api_tls.ca is that of peer_tls: a caller with a certificate that names a node could pass for "+
			"that node; give callers an authority of their own")
	warn(c.Chaos, "chaos is on: whoever may operate this node can cut it "+
		"off from other regions; not for production")
	warn(len(c.Seeds) == 0, "no seeds: the node waits to be found by others; "+
		"set seeds unless it is the first")
	return all
}
