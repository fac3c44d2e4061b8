package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestBoundsOfRegionsWithOtherNumbersOfNodes: how much one node of a region may admit alone depends
// on the region's number of nodes.
func TestBoundsOfRegionsWithOtherNumbersOfNodes(t *testing.T) {
	s, err := Parse("judged.yaml",
		[]byte(strings.NewReplacer("us: {weight: 60}", "us: {weight: 60, nodes: 2}", "EXPECT",
			"that: ceiling").Replace(judged)))
	suite.Must(t, err)
	quotad := filepath.Join(t.TempDir(), "quotad")
	if err := os.WriteFile(quotad, []byte(`#!/bin/sh
case "$5" in
1) echo '{"limits": [{"name": "account", "excess": [{"cause": "local", "when": "w", "at_most": 7, "regions": {"us": 7, "eu": 5}}, {"cause": "c", "when": "w", "at_most": 1}]}]}' ;;
2) echo '{"limits": [{"name": "account", "excess": [{"cause": "local", "when": "w", "at_most": 6, "regions": {"us": 6, "eu": 4}}, {"cause": "c", "when": "w"}]}]}' ;;
esac
`), 0o755); err != nil {
		t.Fatal(err)
	}
	bounds, err := s.PrintedBounds(t.Context(), quotad)
	suite.Must(t, err)
	for m, want := range map[Mishap]int64{{"local", "w", "us"}: 6, {"local", "w", "eu"}: 5,
		{"local", "w", "ap"}: 7} {
		if got, err := bounds["account"].of(m); got != want || err != nil {
			t.Errorf("%+v: %d, %v; want %d", m, got, err, want)
		}
	}
	if got, err := bounds["account"].of(Mishap{"c", "w", "us"}); err == nil {
		t.Errorf("what has no bound for some has %d", got)
	}
}
