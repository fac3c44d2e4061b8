//go:build !race

package process

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const fencedLimits = `
version: 1
regions: {us: {weight: 50}, eu: {weight: 50}}
limits:
  - {name: split, domain: api, key: [split], algorithm: fixed_window, limit: 200, window: 2s, lending_limit: 0, on_store_failure: deny}
`

// TestAFencedRegionThatRuns: eu is fenced while it is cut off, by the word of an operator who is
// wrong: it runs. us takes over its part all the same, and eu goes on with it: the bound
// fenced-alive. When eu hears of the others again it serves nothing more, and says so.
func TestAFencedRegionThatRuns(t *testing.T) {
	t.Parallel()
	f := raise(t, Config{Limits: fencedLimits, Lines: true, Regions: []RegionConfig{{Name: "us"}, {Name: "eu"}}})
	us, eu := f.Region("us").Nodes[0], f.Region("eu").Nodes[0]
	cut := func(fault Fault) {
		f.Lines.Set("us", "eu", fault)
		f.Lines.Set("eu", "us", fault)
	}
	cut(Fault{CutUDP: true, CutTCP: true})
	if code, answer := post(t, us, strings.Replace(fencedLimits, "version: 1", "version: 2\nfenced: [eu]", 1)); code != http.StatusOK {
		t.Fatal(code, answer)
	}
	suite.Eventually(t, "us works under the new document alone", func() bool {
		s, err := us.Status(t.Context())
		return err == nil && strings.HasPrefix(s.Epoch, "2-")
	})
	pause(t, 2*time.Second)
	b := newBucket(t, "split", "1", fixed(200, 2*time.Second))
	_, stopUS := b.offer(f, 150, us)
	_, stopEU := b.offer(f, 150, eu)
	pause(t, 6*time.Second)
	stopUS()
	stopEU()
	excess := b.certain()
	b.wantProvoked("fenced-alive: a region that runs is fenced", printed(t, fencedLimits, "split").of(t, "eu",
		"fenced-alive", "each window while it runs, cut off"), 0, excess)
	cut(Fault{})
	suite.Eventually(t, "eu is not ready", func() bool { return !eu.IsReady(t.Context()) })
	var s struct {
		NotReady string `json:"not_ready"`
	}
	r, err := http.Get("http://" + eu.Admin + "/v1/status")
	must(t, err)
	defer r.Body.Close()
	must(t, json.NewDecoder(r.Body).Decode(&s))
	if !strings.Contains(s.NotReady, `fences region "eu", which serves nothing`) {
		t.Errorf("eu is not ready because %q", s.NotReady)
	}
}
