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

// fencedLimits are shared half and half.
const fencedLimits = `
version: 1
regions: {us: {weight: 50}, eu: {weight: 50}}
limits:
  - {name: split, domain: api, key: [split], algorithm: fixed_window, limit: 200, window: 2s, lending_limit: 0, on_store_failure: deny}
`

// TestAFencedRegionThatRuns: us is fenced while it is cut off, and runs. eu takes over its part all
// the same, and us goes on with it: the bound fenced-alive. When us hears of eu again it serves
// nothing more, and says so.
func TestAFencedRegionThatRuns(t *testing.T) {
	t.Parallel()
	f := raise(t, Config{Limits: fencedLimits, Lines: true, Regions: []RegionConfig{{Name: "us"}, {Name: "eu"}}})
	us, eu := f.Region("us").Nodes[0], f.Region("eu").Nodes[0]
	between := func(fault Fault) {
		f.Lines.Set("us", "eu", fault)
		f.Lines.Set("eu", "us", fault)
	}
	between(Fault{CutUDP: true, CutTCP: true})
	command(t, nil, "regions", "fence", "us", "--yes", "--addr", "http://"+eu.Admin, "--wait", "0")
	suite.Eventually(t, "eu works under the second document alone", func() bool {
		s, err := eu.Status(t.Context())
		return err == nil && strings.HasPrefix(s.Epoch, "2-") && !strings.Contains(s.Epoch, "+")
	})
	b := newBucket(t, "split", "1", fixed(200, 2*time.Second))
	_, stopUS := b.offer(f, 150, us)
	_, stopEU := b.offer(f, 150, eu)
	now := func() int64 { return b.limit.CellOf(time.Now().UnixMicro()) }
	begun := now()
	suite.Eventually(t, "windows begin", func() bool { return now() >= begun+3 })
	stopUS()
	stopEU()
	b.wantProvoked("fenced-alive: a region that runs is fenced", printed(t, fencedLimits, "split").of(t, "us",
		"fenced-alive", "each window while it runs, cut off"), 0, b.certain())
	between(Fault{})
	suite.Eventually(t, "us is not ready", func() bool { return !us.IsReady(t.Context()) })
	var s struct {
		NotReady string `json:"not_ready"`
	}
	r, err := http.Get("http://" + us.Admin + "/v1/status")
	suite.Must(t, err)
	defer r.Body.Close()
	suite.Must(t, json.NewDecoder(r.Body).Decode(&s))
	if !strings.Contains(s.NotReady, `fences region "us", which serves nothing`) {
		t.Errorf("us is not ready because %q", s.NotReady)
	}
}
