//go:build !race

package monitoring

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// rule is an alert rule of alerts.yaml.
type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func readRules(t *testing.T, text string) []rule {
	t.Helper()
	var file struct {
		Groups []struct {
			Name  string `yaml:"name"`
			Rules []rule `yaml:"rules"`
		} `yaml:"groups"`
	}
	suite.Must(t, yaml.UnmarshalWithOptions([]byte(text), &file, yaml.Strict()))
	if len(file.Groups) != 1 || len(file.Groups[0].Rules) == 0 {
		t.Fatalf("there are %d groups", len(file.Groups))
	}
	return file.Groups[0].Rules
}

var (
	severities = []string{"critical", "warning", "info"}
	ofAlert    = regexp.MustCompile(`\$labels\.([a-z_]+)`)
)

// TestMetricsExist: what rules and pages name, nodes have.
func TestMetricsExist(t *testing.T) {
	known := takeInventory(t)
	t.Run("alerts", func(t *testing.T) { judgeAlerts(t, known) })
	t.Run("dashboard", func(t *testing.T) { judgeDashboard(t, known) })
	t.Run("pages", func(t *testing.T) { judgePages(t, known) })
}

// judgeAlerts: rules name metrics and labels that nodes have. Each has a severity, a summary and a
// page.
func judgeAlerts(t *testing.T, known inventory) {
	names := map[string]bool{}
	for _, r := range readRules(t, Alerts("")) {
		if names[r.Alert] {
			t.Errorf("there are two alerts %s", r.Alert)
		}
		names[r.Alert] = true
		labels, problems := known.judge(r.Expr)
		for _, l := range ofAlert.FindAllStringSubmatch(r.Annotations["summary"], -1) {
			if !labels[l[1]] {
				problems = append(problems, "its summary names the label "+l[1]+", which it has not")
			}
		}
		if !slices.Contains(severities, r.Labels["severity"]) || len(r.Labels) != 1 {
			problems = append(problems, fmt.Sprintf("its labels are %v", r.Labels))
		}
		if r.Annotations["summary"] == "" || len(r.Annotations) != 2 {
			problems = append(problems, fmt.Sprintf("its annotations are %v", r.Annotations))
		}
		if want := RunbookFolder + "/" + r.Alert + ".md"; r.Annotations["runbook_url"] != want {
			problems = append(problems, "its runbook_url is not "+want)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", r.Alert, p)
		}
	}
}

// source is a file or folder of the source of quotad.
func source(name string) string { return filepath.Join("..", "..", filepath.FromSlash(name)) }

var headings = []string{"## For callers", "## Look at", "## Do", "## Do not"}

// TestRunbooks: each alert has a page with the same headings, the index has each alert once with
// its severity, and there are no other pages.
func TestRunbooks(t *testing.T) {
	index, err := os.ReadFile(source("docs/operations/alerts.md"))
	suite.Must(t, err)
	pages := map[string]bool{}
	entries, err := os.ReadDir(source(RunbookFolder))
	suite.Must(t, err)
	for _, e := range entries {
		pages[e.Name()] = true
	}
	for _, r := range readRules(t, Alerts("")) {
		name := r.Alert + ".md"
		delete(pages, name)
		row := fmt.Sprintf("| [%s](runbooks/%s) | %s |", r.Alert, name, r.Labels["severity"])
		if n := strings.Count(string(index), row); n != 1 {
			t.Errorf("alerts.md has the row %q %d times", row, n)
		}
		page, err := os.ReadFile(source(RunbookFolder + "/" + name))
		if err != nil {
			t.Error(err)
			continue
		}
		var has []string
		for line := range strings.Lines(string(page)) {
			if strings.HasPrefix(line, "## ") {
				has = append(has, strings.TrimSpace(line))
			}
		}
		if !strings.HasPrefix(string(page), "# "+r.Alert+"\n") || !slices.Equal(has, headings) {
			t.Errorf("%s has the headings %q, want %q", name, has, headings)
		}
	}
	for name := range pages {
		t.Errorf("%s is about no alert", name)
	}
}

var link = regexp.MustCompile(`\]\(([^)#]+)(?:#[^)]*)?\)`)

// TestLinksResolve: links of the pages about operation and deployment lead to files.
func TestLinksResolve(t *testing.T) {
	files := []string{source("docs/how-to/kubernetes.md"), source("docs/how-to/compose.md"),
		source("docs/how-to/systemd.md")}
	for _, pattern := range []string{"docs/operations/alerts.md", RunbookFolder + "/*.md"} {
		found, err := filepath.Glob(source(pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		page, err := os.ReadFile(file)
		suite.Must(t, err)
		for _, m := range link.FindAllStringSubmatch(string(page), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(filepath.Dir(file), m[1])); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
	}
}

// judgePages: pages about alerts name metrics that nodes have.
func judgePages(t *testing.T, known inventory) {
	pages, err := filepath.Glob(source(RunbookFolder + "/*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatal(err)
	}
	for _, file := range append(pages, source("docs/operations/alerts.md")) {
		page, err := os.ReadFile(file)
		suite.Must(t, err)
		for _, name := range ourName.FindAllString(string(page), -1) {
			if known[name] == nil {
				t.Errorf("%s names the metric %s, which there is not", file, name)
			}
		}
	}
}

// TestEachAlertIsTested: alerts_test.yaml, which promtool plays, has for each alert a time at which
// it is quiet and a later one at which it fires.
func TestEachAlertIsTested(t *testing.T) {
	text, err := os.ReadFile("alerts_test.yaml")
	suite.Must(t, err)
	var file struct {
		Tests []struct {
			Alerts []struct {
				Name   string `yaml:"alertname"`
				Expect []any  `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	suite.Must(t, yaml.Unmarshal(text, &file))
	quiet, fires := map[string]bool{}, map[string]bool{}
	for _, test := range file.Tests {
		for _, a := range test.Alerts {
			if len(a.Expect) == 0 {
				quiet[a.Name] = true
			} else {
				fires[a.Name] = true
			}
		}
	}
	for _, r := range readRules(t, Alerts("")) {
		if !quiet[r.Alert] || !fires[r.Alert] {
			t.Errorf("%s is tested to be quiet: %v, to fire: %v", r.Alert, quiet[r.Alert],
				fires[r.Alert])
		}
	}
}

func TestRunbooksElsewhere(t *testing.T) {
	const at = "https://example.org/runbooks"
	rules, elsewhere := readRules(t, Alerts("")), readRules(t, Alerts(at))
	for i, r := range rules {
		if want := at + "/" + r.Alert + ".md"; elsewhere[i].Annotations["runbook_url"] != want {
			t.Errorf("%s has its page at %s, want %s", r.Alert,
				elsewhere[i].Annotations["runbook_url"], want)
		}
	}
}
