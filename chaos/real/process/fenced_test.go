//go:build !race

package process

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// fenced returns a document with a line of its own, which both regions share half and half.
func fenced(version int, line, window string) string {
	return fmt.Sprintf(`
version: %d
%s
regions: {us: {weight: 50}, eu: {weight: 50}}
limits:
  - {name: split, domain: api, key: [split], algorithm: fixed_window, limit: 200, window: %s, lending_limit: 0, on_store_failure: deny}
`, version, line, window)
}

// raiseFenced starts regions of which the operator fences us, by a word that is wrong: it runs, cut
// off, and does not hear of it. eu has all of the limit when raiseFenced returns.
func raiseFenced(t *testing.T, window time.Duration) (*pair, *bucket) {
	t.Helper()
	p := raisePair(t, fenced(1, "", window.String()), 1)
	p.cut()
	must(t, p.commands("0", "regions", "fence", "us", "--yes"))
	p.forgets(p.eu, 2)
	return p, newBucket(t, "split", "1", fixed(200, window))
}

// TestAFencedRegionThatRuns: us is fenced while it is cut off, and runs. eu takes over its part all
// the same, and us goes on with it: the bound fenced-alive. When us hears of eu again it serves
// nothing more, and says so.
func TestAFencedRegionThatRuns(t *testing.T) {
	t.Parallel()
	p, b := raiseFenced(t, 2*time.Second)
	_, stopUS := b.offer(p.Fleet, 150, p.us)
	_, stopEU := b.offer(p.Fleet, 150, p.eu)
	b.windows(3)
	stopUS()
	stopEU()
	excess := b.certain()
	b.wantProvoked("fenced-alive: a region that runs is fenced", printed(t, fenced(1, "", "2s"), "split").of(t, "us",
		"fenced-alive", "each window while it runs, cut off"), 0, excess)
	p.heal()
	suite.Eventually(t, "us is not ready", func() bool { return !p.us.IsReady(t.Context()) })
	var s struct {
		NotReady string `json:"not_ready"`
	}
	r, err := http.Get("http://" + p.us.Admin + "/v1/status")
	must(t, err)
	defer r.Body.Close()
	must(t, json.NewDecoder(r.Body).Decode(&s))
	if !strings.Contains(s.NotReady, `fences region "us", which serves nothing`) {
		t.Errorf("us is not ready because %q", s.NotReady)
	}
}

// TestAFencedRegionReturnsAtOnce: us never heard that it is fenced, and is started again, or not. eu
// has used all of a window when the operator takes us back and the regions hear each other. The
// document of the return gives us what it always had, but nothing of that window.
func TestAFencedRegionReturnsAtOnce(t *testing.T) {
	suite.Long(t)
	for name, again := range map[string]bool{"it runs on": false, "it is started again with its file of before": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, b := raiseFenced(t, 3*time.Second)
			if again {
				p.us.Kill()
				must(t, p.us.Start(t.Context()))
			}
			b.windows(1)
			window := b.now()
			b.uses(200, p.eu)
			must(t, p.commands("0", "regions", "return", "us", "--yes"))
			p.heal()
			p.takes(p.us, 3)
			got := b.spend(p.us, 200)
			t.Logf("us admits %d, %d windows later", got, b.now()-window)
			_, stopUS := b.offer(p.Fleet, 100, p.us)
			defer stopUS()
			_, stopEU := b.offer(p.Fleet, 100, p.eu)
			defer stopEU()
			b.reaches("returned", split{100, 100})
			suite.Eventually(t, "us is ready", func() bool { return p.us.IsReady(t.Context()) })
		})
	}
}

// TestAFencedRegionReturnsByItsFile: the operator forgets to count that us returns, and is told so.
// Then us, which never heard that it is fenced, is started with a file that counts it, and after that
// with its file of before. It knows that it has nothing as long as eu, which it does not hear, has all.
func TestAFencedRegionReturnsByItsFile(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	p, b := raiseFenced(t, 2*time.Second)
	err := p.commands("0", "limits", "apply", written(t, fenced(3, "", "2s")))
	const advice = "write fenced: [us] if it is stopped still, or returned: {us: 1} if it has returned (quotad regions return us)"
	if err == nil || !strings.Contains(err.Error(), advice) {
		t.Errorf("a document that drops the word: %v", err)
	}
	p.us.SetEnv("QUOTAD_POLICY=" + written(t, fenced(3, "returned: {us: 1}", "2s")))
	p.us.Kill()
	must(t, p.us.Start(t.Context()))
	_, stopUS := b.offer(p.Fleet, 150, p.us)
	defer stopUS()
	_, stopEU := b.offer(p.Fleet, 150, p.eu)
	defer stopEU()
	b.reaches("the new file", split{0, 200})
	p.us.SetEnv()
	p.us.Kill()
	must(t, p.us.Start(t.Context()))
	b.reaches("the old file", split{0, 200})
	p.heal()
	b.reaches("healed", split{100, 100})
	suite.Eventually(t, "us is ready", func() bool { return p.us.IsReady(t.Context()) })
}
