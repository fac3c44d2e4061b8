//go:build !race

package main

import (
	"go/build/constraint"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// makefile returns the Makefile.
func makefile(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, "Makefile"))
	suite.Must(t, err)
	return string(text)
}

// recipes returns the recipe of each target of the Makefile, with its variables of the first lines
// put in.
func recipes(t *testing.T) map[string]string {
	t.Helper()
	text, all, target := makefile(t), map[string]string{}, ""
	tested := regexp.MustCompile(`(?m)^TESTED = (.*)$`).FindStringSubmatch(text)
	if tested == nil {
		t.Fatal("the Makefile has no TESTED")
	}
	for line := range strings.Lines(text) {
		recipe, ok := strings.CutPrefix(line, "\t")
		if name, _, found := strings.Cut(line, ":"); !ok && found {
			target = name
		}
		if ok {
			recipe = strings.ReplaceAll(recipe, "$(TESTED)", tested[1])
			all[target] += strings.ReplaceAll(recipe, "$(GO)", "go")
		}
	}
	return all
}

// TestTheGateNamesNoTest: make test, make race and make long are one go test over all packages
// each, which leaves out nothing by its name, and CI calls the first two.
func TestTheGateNamesNoTest(t *testing.T) {
	all := recipes(t)
	const environment = `GOGC=400 GOFLAGS="$$GOFLAGS $(COMPILED) '-ldflags=-s -w'"`
	if !strings.Contains(makefile(t), "\nENVIRONMENT = "+environment+"\n") {
		t.Error("ENVIRONMENT says more than how packages are compiled")
	}
	allowed := regexp.MustCompile(`^(-short|-race|-vet=off|-p \d+|-parallel \d+|-timeout (15|60)m|\./region|\./\.\.\.) ?`)
	if !regexp.MustCompile(`\nCOMPILED =( \\?\s*'-gcflags=[a-z./]+=-dwarf=false( -N -l)?')+\n`).MatchString(makefile(t)) {
		t.Error("COMPILED says more than how packages are compiled")
	}
	for _, target := range []string{"test", "race", "long"} {
		flags, found := strings.CutPrefix(strings.TrimSuffix(all[target], "\n"), "$(ENVIRONMENT) go test ")
		if !found || !strings.HasSuffix(flags, " ./...") {
			t.Errorf("make %s is no go test over all packages:\n%s", target, all[target])
		}
		for rest := flags; rest != ""; {
			flag := allowed.FindString(rest)
			if flag == "" {
				t.Errorf("make %s: %s: a test says itself what it is, and the gate names none", target, rest)
				break
			}
			rest = rest[len(flag):]
		}
		if short := strings.Contains(flags, "-short"); short != (target != "long") {
			t.Errorf("make %s: go test %s", target, flags)
		}
		if race := strings.Contains(flags, "-race"); race != (target == "race") {
			t.Errorf("make %s: go test %s", target, flags)
		}
	}
	ci, err := os.ReadFile(filepath.Join(repository, ".ci", "run"))
	suite.Must(t, err)
	if lines := strings.Split(strings.TrimSpace(string(ci)), "\n"); !slices.Equal(lines[len(lines)-2:],
		[]string{"make test", "exec make race"}) {
		t.Errorf(".ci/run ends with %q", lines[len(lines)-2:])
	}
}

// TestEveryBuildTagHasATarget: a test file that is built only with some tag is run by a target of
// the Makefile. Files for one system are run where that system is.
func TestEveryBuildTagHasATarget(t *testing.T) {
	var tagged []string
	for _, recipe := range recipes(t) {
		for _, flag := range regexp.MustCompile(`go test [^\n]*-tags (\S+)`).FindAllStringSubmatch(recipe, -1) {
			tagged = append(tagged, flag[1])
		}
	}
	runs := func(e constraint.Expr) bool {
		for _, given := range append(tagged, "", "race") {
			for _, system := range []string{"linux", "darwin"} {
				if e.Eval(func(tag string) bool {
					return tag == system || slices.Contains(strings.Split(given, ","), tag)
				}) {
					return true
				}
			}
		}
		return false
	}
	seen := 0
	eachTestFile(t, func(file, src string) {
		line, _, _ := strings.Cut(src, "\n")
		if !constraint.IsGoBuild(line) {
			return
		}
		seen++
		if e, err := constraint.Parse(line); err != nil || !runs(e) {
			t.Errorf("%s: no target of the Makefile runs it: %s, %v", file, line, err)
		}
	})
	if seen == 0 {
		t.Error("no file has a tag")
	}
}

// TestEveryFuzzTargetHasACorpus: what mutation found so far is committed, and go test tries it.
func TestEveryFuzzTargetHasACorpus(t *testing.T) {
	const least = 10
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)
	seen := 0
	eachTestFile(t, func(file, src string) {
		for _, m := range target.FindAllStringSubmatch(src, -1) {
			seen++
			corpus := filepath.Join(filepath.Dir(file), "testdata", "fuzz", m[1])
			if entries, _ := os.ReadDir(corpus); len(entries) < least {
				t.Errorf("%s has %d inputs, want %d: run make fuzz, and keep what it finds new", corpus, len(entries), least)
			}
		}
	})
	if seen == 0 {
		t.Error("there is no fuzz target")
	}
}

// eachTestFile calls a function for every test file of the repository, with its text.
func eachTestFile(t *testing.T, do func(file, src string)) {
	t.Helper()
	err := filepath.WalkDir(repository, func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		src, err := os.ReadFile(file)
		if err == nil {
			do(file, string(src))
		}
		return err
	})
	suite.Must(t, err)
}
