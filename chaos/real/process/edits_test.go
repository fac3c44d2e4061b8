//go:build !race

package process

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// edits is how many documents follow each other. At most 32 stay open whole.
const edits = 44

// edited returns a version of a document that moves a hundredth of a month's limit from us to eu each
// time. Of brief, which no edit changes, both have half.
func edited(version int) string {
	return fmt.Sprintf(`
version: %d
regions: {us: {weight: 1}, eu: {weight: 1}}
limits:
  - {name: month, domain: api, key: [month], algorithm: fixed_window, limit: 1000, window: 720h, lending_limit: 0, on_store_failure: deny, weights: {us: %d, eu: %d}}
  - {name: brief, domain: api, key: [brief], algorithm: fixed_window, limit: 100, window: 2s, lending_limit: 0, on_store_failure: deny}
`, version, 100-version, version)
}

// TestManyEditsWhileARegionIsCutOff: the operator edits the limits again and again, at both nodes of
// eu by turns, while us is cut off and acknowledges nothing. The nodes are started again in between,
// one before documents are folded, the other one after. Then us is fenced, and eu has its part of a
// brief limit. Of the month nobody has more than the first document gave it. When us hears of all that
// it serves nothing.
func TestManyEditsWhileARegionIsCutOff(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	p := raisePair(t, edited(1), 2)
	first, second := p.Region("eu").Nodes[0], p.Region("eu").Nodes[1]
	p.cut()
	for version := 2; version <= edits; version++ {
		p.eu = []*Node{first, second}[version%2]
		p.applies("0", edited(version))
		if again := map[int]*Node{edits / 3: first, edits - 2: second}[version]; again != nil {
			again.Kill()
			must(t, again.Start(t.Context()))
		}
	}
	suite.Eventually(t, "both nodes work under the same documents", func() bool {
		one, other := p.open(first), p.open(second)
		return strings.Contains(one[0], "k-") && strings.Join(one, "+") == strings.Join(other, "+")
	})
	b := newBucket(t, "month", "1", fixed(1000, month))
	b.uses(990, p.us)
	b.uses(10, first, second)
	b.wantUsed("edited", p.us, first, second)
	must(t, p.commands("0", "regions", "fence", "us", "--yes"))
	brief := newBucket(t, "brief", "1", fixed(100, 2*time.Second))
	_, stop := brief.offer(p.Fleet, 75, first, second)
	defer stop()
	brief.reaches("us is fenced", split{0, 100})
	p.heal()
	suite.Eventually(t, "us is not ready", func() bool { return !p.us.IsReady(t.Context()) })
	p.takes(p.us, edits+1)
	b.wantUsed("us knows that it is fenced", p.us, first, second)
}
