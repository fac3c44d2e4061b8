package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/store"
)

// sheet is the summary of a node at its start.
type sheet struct {
	title    string
	rows     [][2]string
	warnings []string
}

// summary says what a node is about to be. Secrets stay out of it.
func summary(c *nodeConfig, p *parts) sheet {
	s := sheet{title: thisBuild().String(), warnings: append(c.warnings(), expiryWarning(p.config.PeerTLS)...)}
	row := func(name, format string, args ...any) {
		s.rows = append(s.rows, [2]string{name, fmt.Sprintf(format, args...)})
	}
	peer, gossip := listening(p.sockets.peer), listening(p.sockets.gossip)
	row("region", "%s, with %s", c.region, counted(c.nodes, "node"))
	row("node", "%s", c.node)
	row("policy", "%s: epoch %s, %s, %s", c.policy, p.config.Policy.Epoch(),
		counted(len(p.config.Policy.Limits), "limit"), counted(len(p.config.Policy.Regions), "region"))
	row("store failure", "%s", storeFailure(p.config.Policy))
	row("redis", "%s", redisInWords(c))
	row("journal", "%s, opened %s", p.journal, counted(int(p.config.Journal.Incarnation()), "time"))
	row("http", "%s", listening(p.sockets.http))
	row("grpc", "%s", listening(p.sockets.grpc))
	row("peer", "%s%s, %s", peer, elsewhere(peer.String(), p.config.PeerAdvertise), peerTrust(p.config.PeerTLS))
	row("gossip", "%s%s, %s", gossip, elsewhere(gossip.String(), p.config.Advertise.String()), encryption(c))
	row("seeds", "%s", orNone(strings.Join(c.seeds, ", ")))
	if c.bootstrap {
		row("bootstrap", "an empty Redis is taken for a first start, not for a loss")
	}
	return s
}

func redisInWords(c *nodeConfig) string {
	if c.embedded {
		return "embedded in this process"
	}
	at, err := store.ParseURL(c.redisURL)
	if err != nil { // readRedisURL has parsed it already
		return "set"
	}
	if at.Encrypted() {
		return at.String() + ", TLS"
	}
	return at.String()
}

// storeFailure counts the limits by what happens while the Redis cannot be used, which an operator should have chosen.
func storeFailure(d *policy.Document) string {
	counts := map[policy.OnStoreFailure]int{}
	for _, l := range d.Limits {
		counts[l.OnStoreFailure]++
	}
	var all []string
	for _, how := range []policy.OnStoreFailure{policy.StoreFailureLocal, policy.StoreFailureDeny, policy.StoreFailureAllow} {
		if n := counts[how]; n > 0 {
			all = append(all, fmt.Sprintf("%s for %s", how, counted(n, "limit")))
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

func encryption(c *nodeConfig) string {
	if c.gossipKeys == nil {
		return "plain text"
	}
	return "encrypted with the first of " + counted(len(c.gossipKeys), "key")
}

func orNone(s string) string {
	if s == "" {
		return "none"
	}
	return s
}

func (s sheet) print(w io.Writer) error {
	t := table(w)
	fmt.Fprintln(t, s.title)
	for _, r := range s.rows {
		fmt.Fprintf(t, "  %s\t%s\n", r[0], r[1])
	}
	for _, text := range s.warnings {
		fmt.Fprintf(t, "  warning\t%s\n", text)
	}
	return t.Flush()
}
