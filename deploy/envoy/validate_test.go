//go:build envoy

package envoy

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/authz/envoyconfig"
)

// whole has every source that Envoy can send, every condition and every kind of limit, and texts that
// YAML could take for something else.
const (
	wholeLimits = `version: 1
regions: {eu: {weight: 1}, us: {weight: 2}}
exempt: [{domain: "y", entries: [{key: plan, value: internal}], deny: true}]
limits:
- {name: pace, domain: "y", entries: [{key: kind, value: 'a: "#}'}, {key: remote_address}], algorithm: token_bucket, limit: 100, window: 10ms, burst: 7}
- {name: queue, domain: "y", entries: [{key: kind, value: 'a: "#}'}, {key: verb}], algorithm: leaky_bucket, limit: 10, window: 1s}
- {name: month, domain: "y", entries: [{key: plan}], algorithm: fixed_window, limit: 2251799813685248, window: month}
- {name: tried, domain: "y", entries: [{key: account}], algorithm: sliding_window_log, limit: 10, window: 1h, shadow: true}
`
	wholeMapping = `rules:
- domain: "y"
  path: /v1
  methods: [POST, PUT]
  host: api.example.org
  descriptors:
    kind: {value: 'a: "#}'}
    remote_address: {client_address: true}
    verb: {method: true}
    account: {header: X-Account, optional: true}
    plan: {header: X-Key, values: {"1": internal, "true": pro}, default: free}
- domain: "y"
  descriptors:
    account: {header: X-Account, optional: true}
    plan: {header: X-Key, values: {"1": internal, "true": pro}, default: free}
`
)

// TestEnvoyTakesWhatIsWritten: a real Envoy takes every form of configuration that is written.
func TestEnvoyTakesWhatIsWritten(t *testing.T) {
	limits, err := policy.Parse("limits.yaml", []byte(wholeLimits))
	suite.Must(t, err)
	mapping, err := authz.Parse("authz.yaml", []byte(wholeMapping))
	suite.Must(t, err)
	text, leftOut, err := envoyconfig.Write(envoyconfig.Sources{Document: limits, Mapping: mapping, Domain: "y",
		DocumentFile: "limits.yaml", MappingFile: "authz.yaml"})
	suite.Must(t, err)
	if len(leftOut) > 0 {
		t.Error(leftOut)
	}
	shadow, err := policy.Parse("limits.yaml", []byte(`version: 1
regions: {eu: {weight: 1}}
limits: [{name: tried, domain: "y", key: [account], algorithm: fixed_window, limit: 10, window: 1h, shadow: true}]
`))
	suite.Must(t, err)
	unbounded, _, err := envoyconfig.Write(envoyconfig.Sources{Document: shadow, Mapping: mapping, Domain: "y",
		DocumentFile: "limits.yaml", MappingFile: "authz.yaml"})
	suite.Must(t, err)
	recipe, err := os.ReadFile("envoy.yaml")
	suite.Must(t, err)
	tokens, err := os.ReadFile("llm.yaml")
	suite.Must(t, err)
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"the recipe":    {string(recipe), true},
		"of tokens":     {string(tokens), true},
		"of everything": {text, true},
		"of no bound":   {unbounded, true},
		"a mistake":     {strings.Replace(text, "token_bucket:", "tokens_bucket:", 1), false},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "envoy.yaml")
			suite.Must(t, os.WriteFile(file, []byte(c.text), 0o644))
			out, err := exec.CommandContext(t.Context(), program, "--mode", "validate", "--log-level", "warning", "-c", file).CombinedOutput()
			if (err == nil) != c.ok {
				t.Errorf("%v\n%s\nof\n%s", err, out, c.text)
			}
			for line := range strings.Lines(string(out)) {
				// Of sse_to_metadata Envoy 1.40 warns that it is work in progress.
				if c.ok && strings.Contains(line, "[warning]") && !(name == "of tokens" && strings.Contains(line, "work-in-progress")) {
					t.Errorf("Envoy warns of it: %s", line)
				}
			}
		})
	}
}
