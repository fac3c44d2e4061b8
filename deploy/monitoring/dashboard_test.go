//go:build !race

package monitoring

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// board is what is looked at of the dashboard.
type board struct {
	UID        string `json:"uid"`
	Title      string `json:"title"`
	Schema     int    `json:"schemaVersion"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
	Panels []boardPanel `json:"panels"`
}

type boardPanel struct {
	ID          int                      `json:"id"`
	Type        string                   `json:"type"`
	Title       string                   `json:"title"`
	Description string                   `json:"description"`
	Source      struct{ UID string }     `json:"datasource"`
	Place       struct{ X, Y, W, H int } `json:"gridPos"`
	Field       struct {
		Defaults struct{ Unit string } `json:"defaults"`
	} `json:"fieldConfig"`
	Targets []struct {
		RefID  string `json:"refId"`
		Expr   string `json:"expr"`
		Legend string `json:"legendFormat"`
	} `json:"targets"`
}

func readBoard(t *testing.T) board {
	t.Helper()
	var b board
	suite.Must(t, json.Unmarshal([]byte(Dashboard()), &b))
	return b
}

// variables are what Grafana puts in the place of the dashboard's variables.
var variables = strings.NewReplacer("$__rate_interval", "5m", "$job", "quotad", "$instance", ".*")

var inLegend = regexp.MustCompile(`\{\{([a-z_]+)\}\}`)

// judgeDashboard: panels ask for metrics and labels that nodes have, of the chosen nodes alone.
func judgeDashboard(t *testing.T, known inventory) {
	b := readBoard(t)
	for _, v := range b.Templating.List {
		for _, name := range ourName.FindAllString(v.Definition, -1) {
			if known[name] == nil {
				t.Errorf("variable %s: there is no metric %s", v.Name, name)
			}
		}
	}
	for _, p := range b.Panels {
		for _, target := range p.Targets {
			expr := variables.Replace(target.Expr)
			labels, problems := known.judge(expr)
			for _, l := range inLegend.FindAllStringSubmatch(target.Legend, -1) {
				if !labels[l[1]] {
					problems = append(problems, "its legend names the label "+l[1]+", which it has not")
				}
			}
			const chosen = `job=~"$job", instance=~"$instance"`
			if n := len(selected.FindAllString(expr, -1)); n == 0 ||
				strings.Count(target.Expr, chosen) != n {
				problems = append(problems, "it does not keep to the chosen job and nodes")
			}
			for _, problem := range problems {
				t.Errorf("panel %s, %s: %s", p.Title, target.RefID, problem)
			}
		}
	}
}

// selected finds the metrics of an expression, each as often as it is selected.
var selected = regexp.MustCompile(`\b(?:up|(?:quotad|go|process)_[a-z0-9_]+)\b`)

// TestDashboardShape: Grafana can show each panel, none hides another, and each says what it shows.
func TestDashboardShape(t *testing.T) {
	b := readBoard(t)
	if b.UID != "quotad" || b.Title == "" || b.Schema < 39 || len(b.Templating.List) != 3 {
		t.Errorf("%s, %q, schema %d, %d variables", b.UID, b.Title, b.Schema,
			len(b.Templating.List))
	}
	ids, titles, taken := map[int]bool{}, map[string]bool{}, map[[2]int]string{}
	for _, p := range b.Panels {
		if p.ID == 0 || ids[p.ID] || p.Title == "" || titles[p.Title] {
			t.Errorf("panel %d, %q: there is another with this id or title, or it has none", p.ID,
				p.Title)
		}
		ids[p.ID], titles[p.Title] = true, true
		at := p.Place
		if at.W < 1 || at.H < 1 || at.X < 0 || at.X+at.W > 24 {
			t.Errorf("panel %q is at %+v, not on a grid of 24 columns", p.Title, at)
		}
		for x := at.X; x < at.X+at.W; x++ {
			for y := at.Y; y < at.Y+at.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" {
					t.Fatalf("panels %q and %q overlap", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Type != "timeseries" && p.Type != "stat" || p.Description == "" ||
			p.Source.UID != "${datasource}" || p.Field.Defaults.Unit == "" || len(p.Targets) == 0 {
			t.Errorf("panel %q is incomplete: %+v", p.Title, p)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if target.RefID == "" || refs[target.RefID] || target.Legend == "" {
				t.Errorf("panel %q: target %q has no name of its own, or no legend", p.Title,
					target.RefID)
			}
			refs[target.RefID] = true
		}
	}
}

// TestDashboardIsIndented: changes of it can be read.
func TestDashboardIsIndented(t *testing.T) {
	var indented bytes.Buffer
	suite.Must(t, json.Indent(&indented, []byte(Dashboard()), "", "  "))
	if indented.String() != Dashboard() {
		t.Error("dashboard.json is not indented by two blanks")
	}
}
