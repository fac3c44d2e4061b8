package local

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hereAndThere is two regions, of which "here" has 40 % of everything.
var hereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}

// node is what a node of region "here" admits without its store, and the rules by which it does.
type node struct {
	*Part
	rules *rules.Rules
}

// rulesOf returns the rules of a document in one of its regions.
func rulesOf(d *policy.Document, region string) *rules.Rules {
	return rules.New(barrier.Only(d, region), nil)
}

// with returns one of so many nodes under a document with these limits. It has no earlier life.
func with(t testing.TB, nodes int, limits ...string) node {
	t.Helper()
	return node{New(Config{Nodes: nodes, Now: time.Now}),
		rulesOf(documents.Parse(t, 1, hereAndThere, limits...), "here")}
}

// charges returns what a request is charged to the limits that apply to it.
func (n node) charges(domain string, descriptors map[string]string, cost quantity.Units) (all []Charge) {
	for _, a := range n.rules.Match(domain, descriptors) {
		all = append(all, Charge{Applied: a, Cost: cost})
	}
	return all
}

// asks spends units of an account.
func (n node) asks(account string, cost quantity.Units) Spent {
	return n.Spend(n.charges("api", map[string]string{"account": account}, cost), true)
}

// admits says how many single units of an account the node admits.
func (n node) admits(account string, most int) (units int) {
	for units < most && n.asks(account, 1).Admitted {
		units++
	}
	return units
}

// applied returns the limit that applies to an account's requests.
func (n node) applied(account string) *rules.Applied {
	return n.rules.Match("api", map[string]string{"account": account})[0]
}

// lives is a node that is started again and again, under one document.
type lives struct {
	t     *testing.T
	disk  *lab.Disk
	rules *rules.Rules
}

// born returns a node whose lives are remembered, and begins the first one.
func born(t *testing.T, limits ...string) (*lives, life) {
	t.Helper()
	kept, disk, err := journals.New("here", "n1")
	suite.Must(t, err)
	l := &lives{t, disk, rulesOf(documents.Parse(t, 1, []string{"here: {weight: 1}"}, limits...), "here")}
	return l, l.begin(kept)
}

// life is one of them, and the journal that it writes to.
type life struct {
	node
	journal *journal.Journal
}

func (l *lives) begin(kept *journal.Journal) life {
	return life{node{New(Config{Journal: kept, Writes: time.Second, Now: time.Now, Log: slog.New(slog.DiscardHandler)}), l.rules}, kept}
}

// next ends a life and begins another.
func (l *lives) next(last life) life {
	l.t.Helper()
	suite.Must(l.t, last.journal.Close())
	kept, err := journals.Open(l.disk, "here", "n1")
	suite.Must(l.t, err)
	return l.begin(kept)
}
