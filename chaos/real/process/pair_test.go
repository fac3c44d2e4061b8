//go:build !race

package process

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// pair is two regions, us and eu. The way between them can be cut. Their operator works at a node of
// eu, with quotad's commands.
type pair struct {
	*Fleet
	t      *testing.T
	us, eu *Node
}

// raisePair starts a node of us, and some of eu.
func raisePair(t *testing.T, limits string, ofEU int) *pair {
	p := &pair{t: t, Fleet: raise(t, Config{Limits: limits, Lines: true,
		Regions: []RegionConfig{{Name: "us"}, {Name: "eu", Nodes: ofEU}}})}
	p.us, p.eu = p.Region("us").Nodes[0], p.Region("eu").Nodes[0]
	return p
}

func (p *pair) cut() { p.between(Fault{CutUDP: true, CutTCP: true}) }

func (p *pair) heal() { p.between(Fault{}) }

func (p *pair) between(f Fault) {
	p.Lines.Set("us", "eu", f)
	p.Lines.Set("eu", "us", f)
}

// commands has the operator change the document with one of quotad's commands, which waits for the
// regions' acknowledgements for so long at most.
func (p *pair) commands(wait string, args ...string) error {
	p.t.Helper()
	return attempt(p.t, nil, append(args, "--addr", "http://"+p.eu.Admin, "--wait", wait)...)
}

// applies has the operator apply a document.
func (p *pair) applies(wait, document string) {
	p.t.Helper()
	must(p.t, p.commands(wait, "limits", "apply", written(p.t, document)))
}

// open returns the names of the documents that are open at a node, the newest last. If it does not
// answer it has one without a name.
func (p *pair) open(n *Node) []string {
	s, err := n.Status(p.t.Context())
	if err != nil {
		return []string{""}
	}
	return strings.Split(s.Epoch, "+")
}

// takes waits until the newest document that is open at a node is of a version.
func (p *pair) takes(n *Node, version int) {
	p.t.Helper()
	suite.Eventually(p.t, fmt.Sprintf("%s takes version %d", n.name, version), func() bool {
		all := p.open(n)
		return strings.HasPrefix(all[len(all)-1], fmt.Sprintf("%d-", version))
	})
}

// forgets waits until a node works under a version alone.
func (p *pair) forgets(n *Node, version int) {
	p.t.Helper()
	suite.Eventually(p.t, fmt.Sprintf("%s works under version %d alone", n.name, version), func() bool {
		all := p.open(n)
		return len(all) == 1 && strings.HasPrefix(all[0], fmt.Sprintf("%d-", version))
	})
}

// split is what us and eu admit in one window.
type split struct{ us, eu int64 }

// splits returns what was admitted of a bucket in each window.
func (b *bucket) splits() map[int64]split {
	b.mu.Lock()
	defer b.mu.Unlock()
	all := map[int64]split{}
	for _, a := range b.all {
		s := all[a.Cell]
		switch {
		case a.Outcome != oracle.Admitted:
			continue
		case a.Region == "us":
			s.us += a.Cost
		default:
			s.eu += a.Cost
		}
		all[a.Cell] = s
	}
	return all
}

// reaches waits for a window that begins from now on, in which the regions admit so much. More than
// the limit must be admitted in none.
func (b *bucket) reaches(when string, want split) {
	b.t.Helper()
	after := b.now()
	reached := false
	defer func() {
		if !reached {
			b.t.Logf("%s: what the regions admitted: %+v", when, b.splits())
		}
	}()
	suite.Eventually(b.t, fmt.Sprintf("%s: us admits %d, and eu %d", when, want.us, want.eu), func() bool {
		all := b.splits()
		for _, s := range all {
			if s.us+s.eu > b.limit.Limit {
				b.t.Fatalf("%s: us admitted %d, and eu %d, of %d in one window", when, s.us, s.eu, b.limit.Limit)
			}
		}
		for cell, s := range all {
			reached = reached || cell > after && s == want
		}
		return reached
	})
	if excess := b.certain(); excess > 0 {
		b.t.Fatalf("%s: %d above the limit", when, excess)
	}
	b.t.Logf("%s: us admits %d, and eu %d", when, want.us, want.eu)
}

// uses waits until nodes have admitted so many units. A starved node may have charged requests that
// got no answer.
func (b *bucket) uses(units int64, nodes ...*Node) {
	b.t.Helper()
	got, before := int64(0), b.unanswered.Load()
	suite.Eventually(b.t, fmt.Sprintf("%d units are used", units), func() bool {
		for _, n := range nodes {
			got += b.spend(n, units-got)
		}
		return got+b.unanswered.Load()-before >= units
	})
}

// wantUsed checks that nodes admit nothing more, and that no window has more than the limit.
func (b *bucket) wantUsed(when string, nodes ...*Node) {
	b.t.Helper()
	for _, n := range nodes {
		if more := b.spend(n, b.limit.Limit); more > 0 {
			b.t.Errorf("%s: %s admits %d more", when, n.name, more)
		}
	}
	if excess := b.certain(); excess > 0 {
		b.t.Errorf("%s: %d above the limit", when, excess)
	}
}

// now returns the present window.
func (b *bucket) now() int64 { return b.limit.CellOf(time.Now().UnixMicro()) }

// windows waits until so many windows have begun.
func (b *bucket) windows(n int64) {
	b.t.Helper()
	begun := b.now()
	suite.Eventually(b.t, "windows begin", func() bool { return b.now() >= begun+n })
}
