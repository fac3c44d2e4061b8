package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/chaos/scenario"
	"github.com/quotad/quotad/chaos/scenarios"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy/files"
)

func chaosCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "chaos",
		Short: "Rehearse faults: partitions, crashes, lost data",
		Long: `chaos plays scenarios: whole regions under load, with the network, nodes, Redis or disks failing at stated times. Every
request and answer is recorded and judged from outside, against what the scenario expects.`,
	}, chaosRunCommand(), chaosListCommand())
}

// shippedScenarios are those that this binary brings along, by name.
func shippedScenarios() ([]*scenario.Scenario, error) {
	files, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil {
		return nil, err
	}
	all := make([]*scenario.Scenario, 0, len(files))
	for _, file := range files {
		s, err := shippedScenario(file)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func shippedScenario(file string) (*scenario.Scenario, error) {
	src, err := scenarios.Files.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return scenario.Parse(file, src)
}

// loadScenario reads a file, or else the scenario of that name that this binary brings along.
func loadScenario(name string) (*scenario.Scenario, error) {
	if !strings.ContainsAny(name, "./"+string(os.PathSeparator)) {
		if s, err := shippedScenario(name + ".yaml"); !errors.Is(err, fs.ErrNotExist) {
			return s, err
		}
	}
	src, err := readScenario(name)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("read scenario: %w; name a file, or one that quotad chaos list shows", err))
	}
	s, err := scenario.Parse(name, src)
	if err != nil {
		return nil, exit.Invalid(name, err)
	}
	return s, nil
}

// readScenario reads a file of no more than a scenario may have.
func readScenario(name string) ([]byte, error) {
	src, err := files.Read(name, scenario.MaxBytes)
	if errors.Is(err, files.ErrTooLarge) {
		err = fmt.Errorf("%s is larger than %d KiB", name, scenario.MaxBytes>>10)
	}
	return src, err
}

// completeScenario offers the scenarios that this binary brings along, and files.
func completeScenario(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	files, err := fs.Glob(scenarios.Files, "*.yaml")
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := make([]cobra.Completion, 0, len(files))
	for _, f := range files {
		names = append(names, strings.TrimSuffix(path.Base(f), ".yaml"))
	}
	return names, cobra.ShellCompDirectiveDefault
}

// rowsOf writes the numbers of rows of the fault matrix: 1, 8.
func rowsOf(rows []int) string {
	return cmp.Or(strings.Trim(strings.ReplaceAll(fmt.Sprint(rows), " ", ", "), "[]"), "-")
}
