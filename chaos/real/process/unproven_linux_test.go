//go:build !race

package process

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	"github.com/quotad/quotad/policy"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/trade/peer"
)

const unprovenLimits = `
version: 1
regions:
  us: {weight: 1}
  eu: {weight: 1}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 100, window: 24h}
`

// madeUp is a gossip member that has taken the place of node eu/n1, and answers calls in its name: a
// far larger limit is open there, and it lends all that it is asked for.
type madeUp struct {
	document *policy.Document
	gossip   *gossip.Gossip
	asked    atomic.Int64 // for units, for what was lost and for documents
}

func (m *madeUp) exchange(_ context.Context, q exchange.Message) (exchange.Reply, error) {
	m.asked.Add(1)
	r := exchange.Reply{From: "eu", Generation: uint64(time.Now().UnixMilli()), ForGeneration: q.Generation,
		Documents: []exchange.Acknowledged{{Version: m.document.Version, Digest: m.document.Epoch().Digest, At: 1}}}
	for _, a := range q.Asks {
		r.Grants = append(r.Grants, exchange.Grant{Cell: a.Cell, Lent: a.Lent, Returned: a.Returned})
	}
	return r, nil
}

func (m *madeUp) recall(context.Context, exchange.Question) (exchange.Testimonies, error) {
	m.asked.Add(1)
	return exchange.Testimonies{From: "eu"}, nil
}

func (m *madeUp) source([sha256.Size]byte) []byte {
	m.asked.Add(1)
	return m.document.Source()
}

// silent is the gossip state of a member that has nothing to say.
type silent struct{}

func (silent) MarshalBinary() ([]byte, error) { return nil, nil }
func (silent) Merge([]byte) (bool, error)     { return false, nil }

// joins has it call us's node, and answer at an address.
func (m *madeUp) joins(t *testing.T, us *Node, at netip.Addr) {
	t.Helper()
	called := netip.AddrPortFrom(at, peerPort).String()
	calls, err := net.Listen("tcp", called)
	suite.Must(t, err)
	s := peer.NewServer(peer.Handlers{Exchange: m.exchange, Recall: m.recall, Document: m.source,
		Store: func(context.Context, peer.Identity, *store.Confirmation) peer.StoreAnswer {
			return peer.StoreAnswer{Node: "eu/n1"}
		}}, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(calls) }()
	t.Cleanup(func() { s.Close(); <-done })
	gossips := netip.AddrPortFrom(at, gossipPort)
	packets, err := net.ListenPacket("udp", gossips.String())
	suite.Must(t, err)
	streams, err := net.Listen("tcp", gossips.String())
	suite.Must(t, err)
	meta, err := proto.Marshal(&hintv1.Node{Region: "eu", Node: "n1", Peer: called})
	suite.Must(t, err)
	m.gossip, err = gossip.Start(gossip.Config{Name: "eu/n1", Meta: meta, Packets: packets, Streams: streams,
		Dial: new(net.Dialer).DialContext, Advertise: gossips, State: silent{},
		Seeds: []string{netip.AddrPortFrom(us.IP, gossipPort).String()}})
	suite.Must(t, err)
	t.Cleanup(func() { _ = m.gossip.Close() })
}

// sees reports whether it has met a member.
func (m *madeUp) sees(name string) bool {
	for _, other := range m.gossip.Members() {
		if other.Name == name {
			return true
		}
	}
	return false
}

// trust is what a node says of whom it believes, and of its document.
type trust struct {
	Unproven bool     `json:"unproven"`
	Members  []string `json:"members"`
	Epoch    string   `json:"epoch"` // of its newest document
}

func trustOf(t *testing.T, n *Node) (s trust) {
	t.Helper()
	answer, err := n.calls.Request(t.Context(), http.MethodGet, "/v1/status", nil)
	if err == nil {
		err = json.Unmarshal(answer, &s)
	}
	suite.Must(t, err)
	return s
}

// certified has quotad make certificates for one node of each region, and returns their settings.
func certified(t *testing.T, quotad string, regions ...string) (settings []string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "certs")
	run := func(args ...string) {
		if out, err := exec.CommandContext(t.Context(), quotad, append([]string{"keys"}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run("ca", dir)
	for _, region := range regions {
		run("cert", dir, "--region", region, "--node", "n1")
		own := filepath.Join(dir, region, "n1")
		settings = append(settings, fmt.Sprintf("peer_tls: {cert: %q, key: %q, ca: %q}", own+".pem", own+".key",
			filepath.Join(dir, "ca.pem")))
	}
	return settings
}

// TestAttackAMadeUpMember: in a network namespace somebody takes the name of eu's node, which has
// ended. Beyond loopback, where nothing proves who nodes are, us takes neither its document nor its
// units. With gossip_keys it does not come in, and with peer_tls it is not even asked for them where
// it has the node's address, too. On loopback, where this machine's processes are trusted, us takes
// both: so the attack is one.
func TestAttackAMadeUpMember(t *testing.T) {
	quotad := inNamespace(t)
	if quotad == "" {
		return
	}
	large, err := policy.Parse("limits.yaml", []byte(strings.NewReplacer("version: 1", "version: 2",
		"limit: 100", "limit: 60000").Replace(unprovenLimits)))
	suite.Must(t, err)
	const open, key = `insecure: "api,admin,peer,gossip"`, `gossip_keys: ["MDEyMzQ1Njc4OWFiY2RlZg=="]`
	tls := certified(t, quotad, "us", "eu")
	for name, c := range map[string]struct {
		settings  []string
		loopback  bool
		tls       bool
		unproven  bool // nothing proves who nodes are
		elsewhere bool // it has another address than the node
		joins     bool // it comes in
	}{
		"no keys":                  {settings: []string{open}, unproven: true, joins: true},
		"gossip_keys":              {settings: []string{open, key}, elsewhere: true},
		"peer_tls":                 {settings: []string{open}, tls: true, joins: true},
		"gossip_keys and peer_tls": {settings: []string{open, key}, tls: true},
		"loopback":                 {loopback: true, joins: true},
	} {
		t.Run(name, func(t *testing.T) {
			config := Config{Quotad: quotad, Limits: unprovenLimits, Settings: c.settings, Unproven: c.unproven,
				Regions: []RegionConfig{{Name: "us", RedisArgs: trusting}, {Name: "eu", RedisArgs: trusting}}}
			if !c.loopback {
				config.Net = beyond.Addr().As4()[0]
			}
			if c.tls {
				config.Regions[0].Settings, config.Regions[1].Settings = tls[:1], tls[1:]
			}
			f, err := Start(t.Context(), t, config)
			suite.Must(t, err)
			us, eu := f.Region("us").Nodes[0], f.Region("eu").Nodes[0]
			eu.Kill()
			before, m, at := trustOf(t, us).Epoch, &madeUp{document: large}, eu.IP
			if c.elsewhere {
				at = at.Next()
			}
			m.joins(t, us, at)
			if c.joins {
				suite.Eventually(t, "the made-up member to be one", func() bool { return m.sees("us/n1") })
			} else {
				suite.Eventually(t, "the true member to be missed", func() bool { return len(trustOf(t, us).Members) == 1 })
				m.gossip.FirstCalls(t.Context())
			}
			b := newBucket(t, "account", "a", fixed(100, 24*time.Hour))
			admitted := b.spend(us, 200)
			if c.loopback {
				suite.Eventually(t, "its document to be taken", func() bool { return trustOf(t, us).Epoch == large.Epoch().String() })
				suite.Eventually(t, "its limit to count", func() bool { admitted += b.spend(us, 200); return admitted > 200 })
				return
			}
			for range 20 {
				pause(t, 200*time.Millisecond)
				admitted += b.spend(us, 200)
			}
			// What the true node lent before is good.
			s := trustOf(t, us)
			if admitted > 100 || c.unproven && admitted != 50 || s.Epoch != before || s.Unproven != c.unproven || m.asked.Load() != 0 {
				t.Errorf("%d of the fixed split, 50, are admitted; the made-up member is asked %d times; %+v", admitted, m.asked.Load(), s)
			}
			if !c.joins && m.sees("us/n1") {
				t.Error("the made-up member came in")
			}
			if !c.unproven {
				return
			}
			asks := peer.NewClient(new(net.Dialer).DialContext, nil)
			defer asks.Close()
			asks.SetNodes("us", []string{us.Peer})
			if _, err := asks.Exchange(t.Context(), "us", exchange.Message{From: "eu", Node: "n1",
				Documents: []exchange.Acknowledged{{Version: 2, Digest: large.Epoch().Digest, At: 1}}}); err == nil ||
				!strings.Contains(err.Error(), "nothing proves who other nodes are") {
				t.Errorf("what it acknowledges is answered: %v", err)
			}
		})
	}
}

// trusting has a Redis answer beyond loopback, too.
var trusting = []string{"--protected-mode", "no"}
