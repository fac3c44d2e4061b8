package serving

import (
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/quotad/quotad/cmd/quotad/build"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

// Sheet is a summary of a node, when it starts or before.
type Sheet struct {
	title    string
	rows     [][2]string
	warnings []string
}

// summary describes an assembled node.
func summary(c *nodeconfig.Config, p *parts) Sheet {
	s := describe(c, p.config.Policy, p.config.PeerTLS, p.protection, placement{
		journal: fmt.Sprintf("%s, opened %s", p.journal,
			show.Counted(int(p.config.Journal.Incarnation()), "time")),
		first: p.config.Journal.Incarnation() == 1 || len(p.config.Journal.Documents()) == 0,
		http:  listening(p.sockets.http), grpc: listening(p.sockets.grpc),
		admin: listening(p.sockets.admin), peer: listening(p.sockets.peer), gossip: listening(p.sockets.gossip),
		advertised: advertised{p.config.PeerAdvertise, p.config.Advertise}})
	warnings := documentWarnings(p.config.Policy)
	if more := len(warnings) - maxWarnings; more > 0 {
		warnings = append(warnings[:maxWarnings],
			fmt.Sprintf("%s more; quotad limits validate %s prints them all",
				show.Counted(more, "warning"), c.Policy))
	}
	s.warnings = append(s.warnings, warnings...)
	return s
}

// maxWarnings bounds the warnings of the limits document that a node prints when it starts.
const maxWarnings = 20

// placement holds the addresses of a node and the place of its journal.
type placement struct {
	journal                         string // in words
	first                           bool   // the node never served with this journal
	http, grpc, admin, peer, gossip netip.AddrPort
	advertised                      advertised
}

// describe summarizes a node without its secrets.
func describe(c *nodeconfig.Config, d *policy.Document, trust *peer.TLS, protected *protection,
	at placement) Sheet {
	s := Sheet{title: build.This().String(), warnings: slices.Concat(c.Warnings(), failpointWarning(c),
		expiryWarning("for calls between regions", trust),
		expiryWarning("of the API", protected.api),
		expiryWarning("of the admin listener", protected.admin))}
	row := func(name, format string, args ...any) {
		s.rows = append(s.rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	row("region", "%s, with %s", c.Region, show.Counted(c.Nodes, "node"))
	row("node", "%s", c.Node)
	row("policy", "%s: epoch %s, %s, %s", c.Policy, d.Epoch(), show.Counted(len(d.Limits), "limit"),
		show.Counted(len(d.Regions), "region"))
	row("store failure", "%s", storeFailure(d))
	row("redis", "%s", redisInWords(c))
	row("journal", "%s", at.journal)
	row("http", "%s, %s", at.http, portTrust(protected.api, protected.apiGuard))
	row("grpc", "%s, %s", at.grpc, portTrust(protected.api, protected.apiGuard))
	row("admin", "%s, %s", at.admin, portTrust(protected.admin, protected.adminGuard))
	row("peer", "%s%s, %s", at.peer, elsewhere(at.peer.String(), at.advertised.peer),
		peerTrust(trust))
	row("gossip", "%s%s, %s", at.gossip, elsewhere(at.gossip.String(),
		at.advertised.gossip.String()), encryption(c))
	row("roles", "%s", rolesInWords(c, protected))
	row("audit", "%s", c.AuditFile())
	row("traces", "%s", tracesInWords(c))
	row("seeds", "%s", show.OrNone(strings.Join(c.Seeds, ", ")))
	switch c.Bootstrap {
	case nodeconfig.BootstrapAsks:
		row("bootstrap", "an empty Redis is taken for a first start, not for a loss, "+
			"unless another node knows better")
	case nodeconfig.BootstrapAlone:
		row("bootstrap", "an empty Redis is taken for a first start, not for a loss: nobody is asked")
	default:
		if at.first {
			row("bootstrap", "no: an empty Redis counts as one that lost its data; "+
				"where this region never served before, start its nodes with --bootstrap, once")
		}
	}
	if c.ForgetStoreTime {
		row("store time", "what this node remembers of its Redis' time is forgotten where it is ahead of this machine's clock: start it without forget_store_time the next time")
	}
	return s
}

func redisInWords(c *nodeconfig.Config) string {
	if c.Redis.Embedded {
		return "embedded in this process"
	}
	at, err := store.ParseURL(c.Redis.URL)
	if err != nil { // cannot happen: nodeconfig has parsed it
		return "set"
	}
	if at.Encrypted() {
		return at.String() + ", TLS"
	}
	return at.String()
}

// storeFailure counts the limits by on_store_failure, because operators should choose that on
// purpose.
func storeFailure(d *policy.Document) string {
	counts := map[policy.OnStoreFailure]int{}
	for _, l := range d.Limits {
		counts[l.OnStoreFailure]++
	}
	var all []string
	for _, how := range []policy.OnStoreFailure{policy.StoreFailureLocal, policy.StoreFailureDeny,
		policy.StoreFailureAllow} {
		if n := counts[how]; n > 0 {
			all = append(all, fmt.Sprintf("%s for %s", how, show.Counted(n, "limit")))
		}
	}
	return strings.Join(all, ", ")
}

func elsewhere(listen, advertise string) string {
	if listen == advertise {
		return ""
	}
	return ", reached at " + advertise
}

func encryption(c *nodeconfig.Config) string {
	if c.GossipKeys == nil {
		return "plain text"
	}
	return "encrypted with the first of " + show.Counted(len(c.GossipKeys), "key")
}

func (s Sheet) Print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprintln(t, s.title)
	for _, r := range s.rows {
		fmt.Fprintf(t, "  %s\t%s\n", r[0], r[1])
	}
	for _, text := range s.warnings {
		fmt.Fprintf(t, "  warning\t%s\n", text)
	}
	return t.Flush()
}
