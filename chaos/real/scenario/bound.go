package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

// Bounds are the lines that quotad limits bound prints for one limit.
type Bounds []Bound

// Bound is one such line.
type Bound struct {
	Cause, When string
	AtMost      *int64 `json:"at_most"` // units; nil: there is no bound
	Regions     map[string]int64
}

// of returns the bound for a mishap, in units: its region's if one is printed, or else the general
// one.
func (b Bounds) of(m Mishap) (int64, error) {
	for _, one := range b {
		if one.Cause != m.Cause || one.When != m.When {
			continue
		}
		if units, known := one.Regions[m.Region]; known {
			return units, nil
		}
		if one.AtMost == nil {
			return 0, fmt.Errorf("%s has no bound", m)
		}
		return *one.AtMost, nil
	}
	return 0, fmt.Errorf("quotad limits bound prints nothing of %s", m)
}

// boundsTimeout is the time that a binary has to print bounds.
const boundsTimeout = 30 * time.Second

// PrintedBounds asks a quotad for the bounds of all limits of the scenario. Bounds depend on the
// number of nodes, so it asks once for each number of nodes that a region has. The bound for a
// region is for its own number of nodes. The general bound is the largest of all.
func (s *Scenario) PrintedBounds(ctx context.Context, quotad string) (map[string]Bounds, error) {
	file, err := os.CreateTemp("", "limits-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	if _, err := file.WriteString(s.Document(1, nil)); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, boundsTimeout)
	defer cancel()
	bounds := map[string]Bounds{}
	asked := map[int]bool{}
	for _, r := range s.Regions {
		if asked[r.Nodes] {
			continue
		}
		asked[r.Nodes] = true
		printed, err := printedFor(ctx, quotad, file.Name(), r.Nodes)
		if err != nil {
			return nil, err
		}
		for limit, more := range printed {
			bounds[limit] = bounds[limit].with(more, func(region string) bool {
				of := s.region(region)
				return of != nil && of.Nodes == r.Nodes
			})
		}
	}
	return bounds, nil
}

// with merges the bounds for another number of nodes, which the regions that theirs reports have.
func (b Bounds) with(more Bounds, theirs func(region string) bool) Bounds {
	for _, one := range more {
		maps.DeleteFunc(one.Regions, func(region string, _ int64) bool { return !theirs(region) })
		at := slices.IndexFunc(b,
			func(o Bound) bool { return o.Cause == one.Cause && o.When == one.When })
		if at < 0 {
			b = append(b, one)
			continue
		}
		if b[at].AtMost == nil || one.AtMost == nil {
			b[at].AtMost = nil
		} else {
			b[at].AtMost = new(max(*b[at].AtMost, *one.AtMost))
		}
		if b[at].Regions == nil {
			b[at].Regions = map[string]int64{}
		}
		maps.Copy(b[at].Regions, one.Regions)
	}
	return b
}

// printedFor returns what a quotad prints for the limits in a file and regions of so many nodes.
func printedFor(ctx context.Context, quotad, file string, nodes int) (map[string]Bounds, error) {
	cmd := exec.CommandContext(ctx, quotad, "limits", "bound", file, "--nodes", fmt.Sprint(nodes),
		"-o", "json")
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf(
			"ask %s for the bounds of the limits: %w%s; is it a binary of quotad?", quotad, err,
			quoted(wrong.String()))
	}
	var printed struct {
		Limits []struct {
			Name   string
			Excess Bounds
		}
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		return nil, fmt.Errorf("read what %s prints of bounds: %w; is it a binary of quotad?",
			quotad, err)
	}
	bounds := make(map[string]Bounds, len(printed.Limits))
	for _, l := range printed.Limits {
		bounds[l.Name] = l.Excess
	}
	return bounds, nil
}

// quoted formats the output of a failed process for an error, if there is any.
func quoted(output string) string {
	if output = strings.TrimSpace(output); output == "" {
		return ""
	}
	return ": " + output
}
