//go:build !race

package monitoring

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/region/decide/admit"
)

// These find in PromQL what a test without Prometheus' own parser can judge: selectors, the
// matchers in them, and lists of labels. "make monitoring" has promtool parse the rest.
var (
	selector = regexp.MustCompile(`\b([a-z_][a-z0-9_]*)\s*(?:\{([^}]*)\}|\[|\boffset\b)`)
	ourName  = regexp.MustCompile(`\bquotad_[a-z0-9_]+`)
	matcher  = regexp.MustCompile(`([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)"`)
	listed   = regexp.MustCompile(
		`\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)`)
)

// ofTargets are the labels that Prometheus gives to all that it scrapes.
var ofTargets = []string{"job", "instance"}

// ofPrometheus are metrics that Prometheus makes.
var ofPrometheus = []string{"up"}

// judge says what is wrong with an expression. It returns the labels that its results may have.
func (v inventory) judge(expr string) (labels map[string]bool, problems []string) {
	labels = map[string]bool{}
	for _, l := range ofTargets {
		labels[l] = true
	}
	names := ourName.FindAllString(expr, -1)
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		if !slices.Contains(ofPrometheus, s[1]) {
			names = append(names, s[1])
		}
	}
	if len(names) == 0 && !strings.Contains(expr, "up{") {
		problems = append(problems, "it has no metric")
	}
	for _, name := range names {
		if v[name] == nil {
			problems = append(problems, "there is no metric "+name)
		}
		for l := range v[name] {
			labels[l] = true
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			if !v[s[1]][m[1]] && !slices.Contains(ofTargets, m[1]) {
				problems = append(problems, s[1]+" has no label "+m[1])
			}
			problems = append(problems, judgeValues(s[1], m[1], m[3])...)
		}
	}
	for _, list := range listed.FindAllStringSubmatch(expr, -1) {
		for l := range strings.FieldsFuncSeq(list[1], func(r rune) bool { return r == ',' || r == ' ' }) {
			if !labels[l] {
				problems = append(problems, "none of its metrics has the label "+l)
			}
		}
	}
	return labels, problems
}

// words is a value, or a regular expression that lists values.
var words = regexp.MustCompile(`^[A-Za-z_]+(\|[A-Za-z_]+)*$`)

// judgeValues says which of the values that a matcher asks for a label cannot have.
func judgeValues(metric, label, text string) (problems []string) {
	values := valuesOf(metric, label)
	if values == nil || !words.MatchString(text) {
		return nil
	}
	for value := range strings.SplitSeq(text, "|") {
		if !slices.Contains(values, value) {
			problems = append(problems, metric+" has no "+label+" "+value)
		}
	}
	return problems
}

// reasons are those of decisions that rules and dashboards ask for.
var reasons = []admit.Reason{admit.WithinLimit, admit.OverLimit, admit.ExceedsRegionCapacity,
	admit.Never, admit.Recovering, admit.QueueFull, admit.StoreFailure, admit.StoreFailureLocal,
	admit.StoreFailureAllowed, admit.NoLimit}

// golden is the list of all series of a node, with the label values that do not depend on its
// configuration. A test of package region holds nodes against it.
var golden = func() string {
	text, err := os.ReadFile(filepath.Join("..", "..", "region", "testdata", "metrics.txt"))
	if err != nil {
		panic(err)
	}
	return string(text)
}()

// valuesOf returns the values that a label of a metric can have; nil: not known.
func valuesOf(metric, label string) (all []string) {
	switch {
	case slices.Contains([]string{"quotad_decisions_total", "quotad_denied_units_total"}, metric) &&
		label == "reason":
		for _, r := range reasons {
			all = append(all, string(r))
		}
		return all
	case slices.Contains([]string{"limit", "domain", "peer", "region", "waiting_for", "shard"}, label):
		return nil // of the configuration
	}
	series := regexp.MustCompile(`(?m)^\w+ ` + metric + `\{(?:.*,)?` + label + `=([^,}]*)`)
	for _, m := range series.FindAllStringSubmatch(golden, -1) {
		all = append(all, m[1])
	}
	return all
}

// TestJudge: what judges expressions finds mistakes, each of its kinds.
func TestJudge(t *testing.T) {
	v := inventory{}
	v.add("quotad_region_nodes", "what")
	v.add("quotad_degraded", "peer")
	v.add("go_goroutines")
	const noLabel, noMetric = "none of its metrics has the label ", "there is no metric "
	for expr, want := range map[string]string{
		`up{job="q"} == 0`: "",
		`sum by (peer) (quotad_degraded{peer=~"eu|us"}) > 0`:     "",
		`quotad_region_nodes{what="seen", instance="a"}`:         "",
		`rate(go_goroutines[5m])`:                                "",
		`rate(go_routines[5m])`:                                  noMetric + "go_routines",
		`quotad_degradd == 1`:                                    noMetric + "quotad_degradd",
		`quotad_degraded{what="seen"}`:                           "quotad_degraded has no label what",
		`quotad_region_nodes{what="sen"}`:                        "quotad_region_nodes has no what sen",
		`quotad_region_nodes{what=~"seen|heard"}`:                "quotad_region_nodes has no what heard",
		`sum by (what) (quotad_degraded)`:                        noLabel + "what",
		`vector(1)`:                                              "it has no metric",
		`quotad_degraded > ignoring(peer, whom) quotad_degraded`: noLabel + "whom",
		`quotad_degraded unless quotad_degraded_total offset 1m`: noMetric + "quotad_degraded_total",
	} {
		_, problems := v.judge(expr)
		if slices.Sort(problems); strings.Join(slices.Compact(problems), "; ") != want {
			t.Errorf("%s: %q, want %q", expr, problems, want)
		}
	}
}
