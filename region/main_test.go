package region

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/rules"
	"github.com/quotad/quotad/region/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// document reads a limits document of some regions, such as "us: {weight: 1}", and of limits given by their fields.
// Fields left out: domain api, key [account], algorithm fixed_window.
func document(t testing.TB, version int, regions []string, limits ...string) *policy.Document {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\nregions: {%s}\nlimits:\n", version, strings.Join(regions, ", "))
	for _, l := range limits {
		for _, usual := range []string{"domain: api", "key: [account]", "algorithm: fixed_window"} {
			if name, _, _ := strings.Cut(usual, " "); !strings.Contains(l, name) {
				l += ", " + usual
			}
		}
		fmt.Fprintf(&b, "  - {%s}\n", l)
	}
	d, err := policy.Parse("limits.yaml", []byte(b.String()))
	if err != nil {
		t.Fatalf("%v\n%s", err, &b)
	}
	return d
}

// hereAndThere is two regions, of which "here" has 40 % of everything.
var hereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}

// unstarted returns a node of region "here" in which nothing runs: it has no store and answers what needs none.
func unstarted(t testing.TB, nodes int, d *policy.Document) *Node {
	t.Helper()
	r, err := rules.New(d, "here", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := &Node{config: Config{Region: "here", Node: "n1", Nodes: nodes}, now: time.Now, fallback: newFallback(nodes, nil), metrics: newMetrics(), refusals: newRefusals(slog.New(slog.DiscardHandler), time.Now),
		batcher: newBatcher(nil, newSeen("here", Memory{}, atTime(0), atTime(0)), nil, queueLength, time.Second, nil), seen: newSeen("here", Memory{}, atTime(0), atTime(0)), deadline: time.Second, breakers: newBreakers(store.Shards{store.Whole}), reopen: make(chan struct{}, 1), closed: make(chan struct{})}
	n.rules.Store(r)
	n.cut.Store(&map[string]bool{})
	return n
}

// asked is what limits are matched by.
func asked(q Request) (domain string, descriptors map[string]string) { return q.Domain, q.Descriptors }

// request is one unit of an account's in domain api.
func request(account string) Request {
	return Request{Domain: "api", Descriptors: map[string]string{"account": account}, Cost: 1}
}
