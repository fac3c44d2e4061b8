//go:build monitoring

package monitoring

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestPromtool has Prometheus' own tool parse the rules and play their unit tests. It parses the
// expressions of the dashboard as recording rules.
func TestPromtool(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: dashboard\n    rules:\n")
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			fmt.Fprintf(&rules, "      - {record: panel_%d_%s, expr: %q}\n", p.ID, target.RefID,
				variables.Replace(target.Expr))
		}
	}
	panels := filepath.Join(t.TempDir(), "panels.yaml")
	suite.Must(t, os.WriteFile(panels, []byte(rules.String()), 0o600))
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"check", "rules", panels},
		{"test", "rules", "alerts_test.yaml"}} {
		out, err := exec.Command("promtool", args...).CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Errorf("promtool %v: %v", args, err)
		}
	}
}
