package serving

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
)

// TestTheFirstStartNamesBootstrap: a node that never started before says what an empty Redis means,
// and which flag says otherwise; later starts do not.
func TestTheFirstStartNamesBootstrap(t *testing.T) {
	d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, "name: a, limit: 1, window: 1m")
	says := func(b nodeconfig.Bootstrap, first bool) string {
		c := &nodeconfig.Config{Region: "us", Node: "n1", Nodes: 1, Bootstrap: b}
		c.Redis.Embedded = true
		for _, row := range describe(c, d, nil, &protection{}, placement{first: first}).rows {
			if row[0] == "bootstrap" {
				return row[1]
			}
		}
		return ""
	}
	if got := says(0, true); !strings.Contains(got, "start its nodes with --bootstrap, once") {
		t.Errorf("a first start: %q", got)
	}
	if got := says(0, false); got != "" {
		t.Errorf("a later start: %q", got)
	}
	if got := says(nodeconfig.BootstrapAsks, true); !strings.Contains(got, "is taken for a first start") {
		t.Errorf("a first start with --bootstrap: %q", got)
	}
}
