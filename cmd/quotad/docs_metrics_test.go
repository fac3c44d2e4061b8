//go:build !race

package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// metric is a metric as the code describes it.
type metric struct {
	name, kind, help string
	labels           []string
}

// declaredMetrics returns every metric that the packages of a node declare, by name. A registry
// would not tell of those that count only where a node has roles, TLS or proxies.
func declaredMetrics(t *testing.T) map[string]metric {
	t.Helper()
	all := map[string]metric{}
	for _, folder := range []string{"region", "gossip", filepath.Join("cmd", "quotad", "serve", "serving")} {
		err := filepath.WalkDir(filepath.Join(repository, folder), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
				return err
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			for _, m := range metricsIn(parsed) {
				all[m.name] = m
			}
			return nil
		})
		suite.Must(t, err)
	}
	return all
}

var metricName = regexp.MustCompile(`^quotad_[a-z0-9_]+$`)

// metricsIn returns the metrics of a file. Each is declared by a composite literal or a call in
// which its name stands directly before its help.
func metricsIn(file *ast.File) (all []metric) {
	var calls []*ast.CallExpr // around the node that is visited
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			calls = append(calls, n)
			if m, ok := described(n.Args); ok {
				m.labels = append(m.labels, m.portOf(n)...)
				all = append(all, m)
			}
		case *ast.CompositeLit:
			if m, ok := described(n.Elts); ok {
				m.addCall(calls, n)
				all = append(all, m)
			}
		}
		return true
	})
	return all
}

// described reads name, help and labels from the parts of a literal or a call.
func described(parts []ast.Expr) (m metric, ok bool) {
	for i, part := range parts {
		name, isText := text(part)
		if !isText || !metricName.MatchString(name) || i+1 == len(parts) {
			continue
		}
		help, isText := text(parts[i+1])
		if !isText {
			continue
		}
		m.name, m.help = name, help
		for _, rest := range parts[i+2:] {
			if label, isText := text(rest); isText {
				m.labels = append(m.labels, label)
				continue
			}
			m.labels = append(m.labels, labelsIn(rest)...)
		}
		m.kind = "gauge"
		if strings.HasSuffix(name, "_total") {
			m.kind = "counter"
		}
		return m, true
	}
	return m, false
}

// addCall adds what the call says of which the literal is an argument: the kind, and the labels.
func (m *metric) addCall(calls []*ast.CallExpr, literal *ast.CompositeLit) {
	for _, call := range calls {
		if len(call.Args) == 0 || call.Args[0] != ast.Expr(literal) {
			continue
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); ok && strings.Contains(f.Sel.Name, "Histogram") {
			m.kind = "histogram"
		}
		for _, arg := range call.Args[1:] {
			m.labels = append(m.labels, labelsIn(arg)...)
		}
	}
}

// portOf returns the label that package door gives all its metrics.
func (m metric) portOf(call *ast.CallExpr) []string {
	if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "of" {
		return []string{"port"}
	}
	return nil
}

// labelsIn returns the texts of a []string literal, and the names of a prometheus.Labels literal.
func labelsIn(e ast.Expr) (labels []string) {
	if pair, ok := e.(*ast.KeyValueExpr); ok {
		e = pair.Value
	}
	literal, ok := e.(*ast.CompositeLit)
	if !ok {
		return nil
	}
	for _, part := range literal.Elts {
		if pair, ok := part.(*ast.KeyValueExpr); ok {
			part = pair.Key
		}
		if label, ok := text(part); ok {
			labels = append(labels, label)
		}
	}
	return labels
}

// text returns the value of an expression of string literals, of a field or alone.
func text(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.KeyValueExpr:
		return text(e.Value)
	case *ast.BasicLit:
		value, err := strconv.Unquote(e.Value)
		return value, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, ok := text(e.X)
		right, also := text(e.Y)
		return left + right, ok && also
	}
	return "", false
}

// metricsTable has a row for each metric.
func metricsTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| metric | kind | labels | what it says |\n|---|---|---|---|\n")
	all := declaredMetrics(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		m := all[name]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.name, m.kind,
			cmp.Or(strings.Join(m.labels, ", "), "-"), cell(m.help))
	}
	return b.String()
}

// notMetrics are other names that begin like one: of configurations of proxies.
var notMetrics = []string{"quotad_down"}

// TestDocsMetricsExist: every metric that a page names is one. What the code is found to declare
// has all that a running node was seen to have.
func TestDocsMetricsExist(t *testing.T) {
	all := declaredMetrics(t)
	series, err := os.ReadFile(filepath.Join(repository, "region", "testdata", "metrics.txt"))
	suite.Must(t, err)
	for l := range strings.Lines(string(series)) {
		kind, rest, _ := strings.Cut(strings.TrimSpace(l), " ")
		name, labels, _ := strings.Cut(rest, "{")
		m, known := all[name]
		if !known || m.kind != kind {
			t.Errorf("a node has the %s %s, and the source the %s %q", kind, name, m.kind, m.name)
		}
		for pair := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
			if label, _, _ := strings.Cut(pair, "="); label != "" && !slices.Contains(m.labels, label) {
				t.Errorf("%s has the label %s, which was not found in the source", name, label)
			}
		}
	}
	named := regexp.MustCompile(`\bquotad_[a-z0-9_]+\b`)
	for _, p := range pages(t) {
		for i, l := range strings.Split(p.text, "\n") {
			for _, name := range named.FindAllString(l, -1) {
				base := name
				for _, suffix := range []string{"_bucket", "_sum", "_count"} {
					base = strings.TrimSuffix(base, suffix)
				}
				_, known := all[name]
				if !known && all[base].kind != "histogram" && !slices.Contains(notMetrics, name) {
					t.Errorf("%s:%d: there is no metric %s", p.path, i+1, name)
				}
			}
		}
	}
}
