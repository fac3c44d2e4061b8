//go:build !race

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/chaos/real/staging"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/front/authz"
	"github.com/quotad/quotad/region/front/roles"
)

// A block of YAML says what it is: "limits", "node", "roles", "authz", "scenario" and "nodes" are
// whole files. "limits-part" has fields of a limits document, "limit" is an entry of limits, and
// "node-part" has fields of a node file: they are valid within the smallest file around them.
// "foreign" is a file of another program.

// around is the smallest document around a limit.
const around = `version: 1
regions: {us-east: {weight: 40}, eu-west: {weight: 40}, ap-south: {weight: 20}}
`

const aLimit = `limits:
  - {name: some, domain: some, key: [some], algorithm: fixed_window, limit: 1000, window: 1m}
`

// yamlChecks say what is wrong with a block, by what it is.
var yamlChecks = map[string]func(t *testing.T, text string) error{
	"limits": func(_ *testing.T, text string) error {
		_, err := policy.Parse("limits.yaml", []byte(text))
		return err
	},
	"limits-part": func(_ *testing.T, text string) error {
		document := around + text
		if !strings.Contains("\n"+text, "\nlimits:") {
			document += aLimit
		}
		_, err := policy.Parse("limits.yaml", []byte(document))
		return err
	},
	"limit": func(_ *testing.T, text string) error {
		_, err := policy.Parse("limits.yaml", []byte(around+"limits:\n"+text))
		return err
	},
	"roles": func(_ *testing.T, text string) error {
		for n := 1; strings.Contains(text, "sha256:..."); n++ {
			text = strings.Replace(text, "sha256:...", roles.HashToken(fmt.Sprint(n)), 1)
		}
		_, err := roles.Parse("roles.yaml", []byte(text))
		return err
	},
	"authz": func(_ *testing.T, text string) error {
		_, err := authz.Parse("authz.yaml", []byte(text))
		return err
	},
	"scenario": func(_ *testing.T, text string) error {
		_, err := scenario.Parse("scenario.yaml", []byte(text))
		return err
	},
	"nodes": func(_ *testing.T, text string) error {
		_, err := staging.ParseNodes("nodes.yaml", []byte(text))
		return err
	},
	"node":      nodeProblem,
	"node-part": nodePartProblem,
	"foreign":   func(*testing.T, string) error { return nil },
}

// nodeProblem says what is wrong with a node file. Files that it names need not be there, but for
// keys of gossip, which are read with the settings.
func nodeProblem(t *testing.T, text string) error {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "gossip.key"),
		[]byte(strings.Repeat("BBBB", 8)+"\n"), 0o600); err != nil {
		return err
	}
	file := filepath.Join(folder, "node.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return err
	}
	_, err := configured(file, nothingSet)
	return err
}

// nodePartProblem says what is wrong with settings that a node file has beside those that it must
// have.
func nodePartProblem(t *testing.T, text string) error {
	needed := []string{"region: us-east", "node: n1", "data_dir: data", "policy: limits.yaml",
		`redis: {url: "redis://127.0.0.1:6379/0"}`}
	whole := text
	for _, l := range needed {
		name, _, _ := strings.Cut(l, ":")
		if !strings.Contains("\n"+text, "\n"+name+":") {
			whole += l + "\n"
		}
	}
	return nodeProblem(t, whole)
}

// checkedElsewhere are pages whose files of other programs deploy/checks reads.
var checkedElsewhere = []string{"docs/how-to/kubernetes.md", "docs/how-to/compose.md",
	"docs/how-to/systemd.md"}

func TestDocsExamplesAreValid(t *testing.T) {
	checked := 0
	for _, p := range pages(t) {
		for _, f := range p.fences {
			switch f.language {
			case "yaml":
				if f.words[0] == "" && slices.Contains(checkedElsewhere, p.path) {
					continue
				}
				check, known := yamlChecks[f.words[0]]
				if !known {
					t.Errorf("%s: say what the YAML is: %q is none of %s", f.at(), f.words[0],
						"limits, limits-part, limit, node, node-part, roles, authz, scenario, foreign")
					continue
				}
				checked++
				if err := check(t, f.text); err != nil {
					t.Errorf("%s: %v", f.at(), err)
				}
			case "json":
				var any any
				if err := json.Unmarshal([]byte(f.text), &any); err != nil {
					t.Errorf("%s: %v", f.at(), err)
				}
			case "go":
				checked++
				checkGo(t, f)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d examples were found", checked)
	}
}

// checkGo compares a block of Go with the file that it says it is from, as in
// "go from=client/example_test.go". All its lines stand there one after the other, whatever their
// indentation, so they compile, and those of examples run.
func checkGo(t *testing.T, f codeBlock) {
	t.Helper()
	i := slices.IndexFunc(f.words, func(w string) bool { return strings.HasPrefix(w, "from=") })
	if i < 0 {
		t.Errorf("%s: say which file the Go is from", f.at())
		return
	}
	name := strings.TrimPrefix(f.words[i], "from=")
	source, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(name)))
	if err != nil {
		t.Errorf("%s: %v", f.at(), err)
		return
	}
	if !strings.Contains(unindented(string(source)), unindented(f.text)) {
		t.Errorf("%s: %s does not have these lines", f.at(), name)
	}
}

// unindented returns a text without the blanks at the beginnings and ends of its lines.
func unindented(text string) string {
	var b strings.Builder
	for l := range strings.Lines(text) {
		b.WriteString(strings.TrimSpace(l) + "\n")
	}
	return b.String()
}
