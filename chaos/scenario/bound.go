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

// Bounds are the lines of what quotad limits bound prints of one limit.
type Bounds []Bound

// Bound is one line of it.
type Bound struct {
	Cause, When string
	AtMost      *int64 `json:"at_most"` // units; nil: there is no bound
	Regions     map[string]int64
}

// of is what a mishap comes to at most, in its region where that is said.
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

// boundsTimeout bounds how long a binary may take to print bounds.
const boundsTimeout = 30 * time.Second

// PrintedBounds asks a quotad for the bounds of all limits of the scenario. They
// are for a number of nodes, so they are asked for once for each number that a
// region has: what is said of a region is for its own, and what is said of all is
// the largest.
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
			bounds[limit] = bounds[limit].with(more, func(region string) bool { of := s.region(region); return of != nil && of.Nodes == r.Nodes })
		}
	}
	return bounds, nil
}

// with adds what is printed for another number of nodes, which some regions have.
func (b Bounds) with(more Bounds, theirs func(region string) bool) Bounds {
	for _, one := range more {
		maps.DeleteFunc(one.Regions, func(region string, _ int64) bool { return !theirs(region) })
		at := slices.IndexFunc(b, func(o Bound) bool { return o.Cause == one.Cause && o.When == one.When })
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

// printedFor is what a quotad prints of the limits in a file for regions of so
// many nodes.
func printedFor(ctx context.Context, quotad, file string, nodes int) (map[string]Bounds, error) {
	cmd := exec.CommandContext(ctx, quotad, "limits", "bound", file, "--nodes", fmt.Sprint(nodes), "-o", "json")
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the bounds of the limits: %w%s; is it a binary of quotad?", quotad, err, quoted(wrong.String()))
	}
	var printed struct {
		Limits []struct {
			Name   string
			Excess Bounds
		}
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		return nil, fmt.Errorf("read what %s prints of bounds: %w; is it a binary of quotad?", quotad, err)
	}
	bounds := make(map[string]Bounds, len(printed.Limits))
	for _, l := range printed.Limits {
		bounds[l.Name] = l.Excess
	}
	return bounds, nil
}

// quoted is what a process said of an error, if anything.
func quoted(output string) string {
	if output = strings.TrimSpace(output); output == "" {
		return ""
	}
	return ": " + output
}
