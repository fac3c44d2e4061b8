package rehearsal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/chaos/real/scenarios"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy/files"
)

// Shipped returns the scenarios in this binary, by name.
func Shipped() ([]*scenario.Scenario, error) {
	files, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]*scenario.Scenario, 0, len(files))
	for _, file := range files {
		s, err := shipped(file)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func shipped(file string) (*scenario.Scenario, error) {
	src, err := scenarios.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return scenario.Parse(file, src)
}

// Load reads a scenario: the one in this binary with that name, else a file.
func Load(name string) (*scenario.Scenario, error) {
	if !strings.ContainsAny(name, "./"+string(os.PathSeparator)) {
		if s, err := shipped(name + ".yaml"); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	src, err := readFile(name)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf(
			"read scenario: %w; name a file, or one that quotad chaos run lists without a name", err))
	}
	s, err := scenario.Parse(name, src)
	if err != nil {
		return nil, exit.Invalid(name, err)
	}
	return s, nil
}

// readFile reads a file that is at most as large as a scenario may be.
func readFile(name string) ([]byte, error) {
	src, err := files.Read(name, scenario.MaxBytes)
	if errors.Is(err, files.ErrTooLarge) {
		err = fmt.Errorf("%s is larger than %d KiB", name, scenario.MaxBytes>>10)
	}
	return src, err
}
