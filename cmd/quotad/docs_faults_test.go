//go:build !race

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/play/sim"
	"github.com/quotad/quotad/chaos/real/scenarios"
)

// TestDocsFaultsAreTried: each test and scenario that the page of faults names exists, each row of
// the simulator stands in the rows that say seeds, and no others do.
func TestDocsFaultsAreTried(t *testing.T) {
	p := readPage(t, "docs/development/faults.md")
	tests := testNames(t)
	seeds := map[int]bool{}
	named := regexp.MustCompile("`([^`]+)`")
	for _, line := range strings.Split(p.text, "\n") {
		cells := strings.Split(line, "|")
		row, err := strconv.Atoi(strings.TrimSpace(cells[min(1, len(cells)-1)]))
		if err != nil {
			continue
		}
		tried := cells[3]
		seeds[row] = seeds[row] || strings.HasPrefix(strings.TrimSpace(tried), "seeds")
		for _, name := range named.FindAllStringSubmatch(tried, -1) {
			switch name := name[1]; {
			case strings.HasPrefix(name, "Test"):
				if !tests[name] {
					t.Errorf("row %d: there is no %s", row, name)
				}
			case strings.HasPrefix(name, "make "), strings.HasPrefix(name, "--"):
			default:
				if _, err := fs.Stat(scenarios.Files, name+".yaml"); err != nil {
					t.Errorf("row %d: there is no scenario %s", row, name)
				}
			}
		}
	}
	for row := range 36 {
		if _, fires := sim.RowNames[row]; fires != seeds[row] {
			t.Errorf("row %d: the simulator fires it: %v, the page says seeds: %v", row, fires, seeds[row])
		}
	}
}

// testNames returns the names of all tests of the module.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	all, declared := map[string]bool{}, regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]*)\(`)
	err := filepath.WalkDir(filepath.Join("..", ".."), func(file string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		for _, found := range declared.FindAllSubmatch(source, -1) {
			all[string(found[1])] = true
		}
		return err
	})
	suite.Must(t, err)
	return all
}
