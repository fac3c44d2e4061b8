package scenario

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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

// PrintedBounds asks a quotad for the bounds of all limits of the scenario. A
// bound is for a number of nodes; where the regions differ it is the largest.
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
	nodes := 1
	for _, r := range s.Regions {
		nodes = max(nodes, r.Nodes)
	}
	cmd := exec.CommandContext(ctx, quotad, "limits", "bound", file.Name(), "--nodes", fmt.Sprint(nodes), "-o", "json")
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("ask %s for the bounds of the limits: %w: %s", quotad, err, wrong.Bytes())
	}
	var printed struct {
		Limits []struct {
			Name   string
			Excess Bounds
		}
	}
	if err := json.Unmarshal(out, &printed); err != nil {
		return nil, fmt.Errorf("read what %s prints of bounds: %w", quotad, err)
	}
	bounds := make(map[string]Bounds, len(printed.Limits))
	for _, l := range printed.Limits {
		bounds[l.Name] = l.Excess
	}
	return bounds, nil
}
