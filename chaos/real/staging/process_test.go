package staging

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
	"github.com/quotad/quotad/chaos/real/scenario"
)

const limits = `
version: 1
regions:
  us: {weight: 60}
  eu: {weight: 40}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 10, window: 1s}
`

// TestCutsRealNodes cuts real nodes off at their admin listeners. Both regions are degraded, say so in
// their decisions, and are in touch again once the cut has ended by itself.
func TestCutsRealNodes(t *testing.T) {
	fleet, err := process.Start(t.Context(), t, process.Config{Limits: limits,
		Settings: []string{"chaos: enabled"},
		Regions:  []process.RegionConfig{{Name: "us", Nodes: 2}, {Name: "eu"}}})
	suite.Must(t, err)
	nodes := &Nodes{}
	for _, r := range fleet.Regions {
		region := Region{Name: r.Name}
		for _, n := range r.Nodes {
			region.Nodes = append(region.Nodes, Node{Name: n.Name, HTTP: n.HTTP, Admin: n.Admin})
		}
		nodes.Regions = append(nodes.Regions, region)
	}
	s, err := Open(nodes, time.Minute)
	suite.Must(t, err)
	defer func() {
		suite.Must(t, s.Close())
	}()
	if err := s.Check(t.Context(),
		scenarioOf(t, "us: {weight: 60, nodes: 2}, eu: {weight: 40}")); err != nil {
		t.Fatal(err)
	}
	const cut = 8 * time.Second
	if err := s.cut(t.Context(), "us", "eu", "both", cut); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	for _, region := range s.Regions() {
		awaitDegraded(t, s, region, true)
	}
	limit := oracle.Limit{Limit: 10, Window: time.Second, Algorithm: "fixed_window"}
	q := scenario.Question{Domain: "api", Descriptors: map[string]string{"account": "42"}, Cost: 1,
		Bucket: "account", Limit: limit}
	for turn := range uint64(2) {
		if a, sent := s.Ask(t.Context(), "us", turn, q); !sent || a.Outcome != oracle.Admitted ||
			!a.Degraded || a.Share != 6 {
			t.Errorf("during the cut, on the fixed split: %+v, sent %v", a, sent)
		}
	}
	for _, region := range s.Regions() {
		awaitDegraded(t, s, region, false)
	}
	if took := time.Since(begin); took < cut {
		t.Errorf("the regions are in touch after %v of a cut of %v", took, cut)
	}
	if facts := s.Facts(); s.Effect(scenario.Step{Between: s.Regions()}) == 0 {
		t.Errorf("nothing was lost by the cut: %+v", facts)
	}
}

// awaitDegraded waits until all nodes of a region are degraded towards another, or none is.
func awaitDegraded(t *testing.T, s *Stage, region string, want bool) {
	t.Helper()
	suite.Eventually(t, fmt.Sprintf("all nodes of %s are degraded: %v", region, want), func() bool {
		for _, p := range s.places[region] {
			status, err := p.calls.Status(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(status.Peers) != 1 || status.Peers[0].Degraded != want {
				return false
			}
		}
		return true
	})
}
