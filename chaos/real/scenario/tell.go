package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String describes the step.
func (s Step) String() string {
	switch {
	case s.Do == "load":
		return fmt.Sprintf("load: %d units a second of %s in %s", s.Rate, s.Limit, s.Region)
	case s.between():
		return s.Do + ": " + s.way() + s.detail()
	case s.Do == "apply-policy":
		text := "apply-policy: the next version"
		for _, r := range slices.Sorted(maps.Keys(s.Weights)) {
			text += fmt.Sprintf(", weight %d for %s", s.Weights[r], r)
		}
		return text
	case s.Region == "":
		return s.Do + ": every node, one after the other"
	}
	text := s.Do + ": " + s.Region
	if s.Node > 0 {
		text += fmt.Sprintf("/n%d", s.Node)
	}
	if s.Envoy > 0 {
		text += fmt.Sprintf("/envoy %d", s.Envoy)
	}
	if len(s.Points) > 0 {
		text += fmt.Sprintf(", %d times at each of %s", s.Times, strings.Join(s.Points, ", "))
	}
	if s.By != 0 {
		text += ", by " + s.By.String()
	}
	return text
}

// way describes the regions between which a step has an effect.
func (s Step) way() string {
	some, others := strings.Join(s.Between, ", "), strings.Join(s.And, ", ")
	switch {
	case slices.Equal(s.Between, s.And):
		return "between all regions"
	case s.OneWay:
		return "from " + some + " to " + others
	}
	return "between " + some + " and " + others
}

// counted writes a number with its noun: 1 step, 2 steps.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func (s Step) detail() string {
	switch {
	case s.Only != "":
		return ", " + s.Only + " alone"
	case s.Do == "delay":
		return ", by " + s.By.String()
	case s.Percent > 0:
		return fmt.Sprintf(", %d%% of packets", s.Percent)
	case s.Every > 0:
		return fmt.Sprintf(", every %s for %s", s.Every, s.For)
	}
	return ""
}
