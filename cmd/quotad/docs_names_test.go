//go:build !race

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/mutants"
	"github.com/quotad/quotad/cmd/quotad/exit"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/front/roles"
)

// TestDocsNameEveryReason: the reference has every reason of a decision.
func TestDocsNameEveryReason(t *testing.T) {
	p := readPage(t, "docs/reference/errors.md")
	for number, name := range quotadv1.Reason_name {
		reason := strings.ToLower(strings.TrimPrefix(name, "REASON_"))
		if number != 0 && !strings.Contains(p.text, "\n| `"+reason+"` |") {
			t.Errorf("%s has no row for the reason %s", p.path, reason)
		}
	}
}

// TestDocsNameEveryExitCode: the reference has every exit code.
func TestDocsNameEveryExitCode(t *testing.T) {
	p := readPage(t, "docs/reference/errors.md")
	for code := exit.OK; code <= exit.NotShown; code++ {
		if !strings.Contains(p.text, fmt.Sprintf("\n| %d |", code)) {
			t.Errorf("%s has no row for the exit code %d", p.path, code)
		}
	}
}

// TestDocsNameEveryCall: the reference has every path of a node's listeners with the role that it
// needs, and every call of its services.
func TestDocsNameEveryCall(t *testing.T) {
	http, grpc := readPage(t, "docs/reference/http.md"), readPage(t, "docs/reference/grpc.md")
	words := map[roles.Role]string{roles.Open: "none", roles.Known: "any caller"}
	for _, call := range roles.Calls() {
		need, _ := roles.NeedOf(call)
		role, special := words[need]
		if !special {
			role = string(need)
		}
		service, method, _ := strings.Cut(strings.TrimPrefix(call, "/quotad.v1."), "/")
		switch {
		case strings.HasPrefix(call, "/quotad.v1."):
			if !strings.Contains(grpc.text, "\n| "+method+" |") {
				t.Errorf("%s says nothing of %s of %s", grpc.path, method, service)
			}
		case strings.Contains(call, "."): // of other services, or a file
		default:
			if !rowWith(http, call, role) {
				t.Errorf("%s has no row for %s with the role %s", http.path, call, role)
			}
		}
	}
}

// rowWith reports whether a page has a row whose first cell ends with a path, and that names a role.
func rowWith(p *page, call, role string) bool {
	for _, l := range p.prose {
		cells := strings.Split(l.text, "|")
		if len(cells) > 3 && namesPath(cells[1], call) && strings.TrimSpace(cells[3]) == role {
			return true
		}
	}
	return false
}

// namesPath reports whether a text has a path between its code marks, blanks or question marks.
func namesPath(text, call string) bool {
	for _, word := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" `,?", r) }) {
		if word == strings.TrimSuffix(call, "{$}") {
			return true
		}
	}
	return false
}

// TestDocsCountMutants: the page about mutants has the numbers of those that there are.
func TestDocsCountMutants(t *testing.T) {
	all, err := mutants.All()
	suite.Must(t, err)
	byTest := 0
	for _, m := range all {
		if m.Within == 0 {
			byTest++
		}
	}
	want := fmt.Sprintf("Of %d mutants the simulator finds %d.", len(all), len(all)-byTest)
	other := fmt.Sprintf("The other %d are found", byTest)
	p := readPage(t, "docs/development/mutants.md")
	text := strings.Join(strings.Fields(p.text), " ")
	if !strings.Contains(text, want) || !strings.Contains(text, other) {
		t.Errorf("%s should say %q and %q", p.path, want, other)
	}
}

// TestDocsNameEveryTarget: the page for contributors says what each target of the Makefile is for.
func TestDocsNameEveryTarget(t *testing.T) {
	p := readPage(t, "CONTRIBUTING.md")
	for target := range recipes(t) {
		if !strings.Contains(p.text, "`make "+target+"`") {
			t.Errorf("%s says nothing of make %s", p.path, target)
		}
	}
}
