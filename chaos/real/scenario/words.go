package scenario

import (
	"slices"
)

// word is one of the words of a step or an expectation, with its required and optional fields.
type word struct {
	required, optional []string
}

// steps are the words of steps, with their fields.
var steps = map[string]word{
	"load":  {required: []string{"region", "limit", "rate"}, optional: []string{"key"}},
	"cut":   {optional: []string{"between", "and", "one-way", "only"}},
	"heal":  {optional: []string{"between", "and"}},
	"delay": {required: []string{"by"}, optional: []string{"between", "and", "one-way"}},
	"lose": {required: []string{"percent"}, optional: []string{"between", "and",
		"one-way"}},
	"flap":           {required: []string{"every", "for"}, optional: []string{"between", "and"}},
	"kill":           {required: []string{"region"}, optional: []string{"node", "points", "times"}},
	"start":          {required: []string{"region"}, optional: []string{"node"}},
	"restart":        {optional: []string{"region", "node"}},
	"pause":          {required: []string{"region"}, optional: []string{"node"}},
	"continue":       {required: []string{"region"}, optional: []string{"node"}},
	"kill-redis":     {required: []string{"region"}},
	"start-redis":    {required: []string{"region"}},
	"flush-redis":    {required: []string{"region"}},
	"pause-redis":    {required: []string{"region"}},
	"continue-redis": {required: []string{"region"}},
	"failover-redis": {required: []string{"region"}, optional: []string{"by"}},
	"apply-policy":   {optional: []string{"weights"}},
	"fail-disk":      {required: []string{"region"}, optional: []string{"node"}},
	"mend-disk":      {required: []string{"region"}, optional: []string{"node"}},
	"cut-envoys":     {required: []string{"region"}, optional: []string{"envoy"}},
	"clock":          {required: []string{"region", "by"}},
}

// expectations are the words of expectations, with their fields.
var expectations = map[string]word{
	"ceiling":  {optional: []string{"limit", "key", "despite", "above"}},
	"admitted": {required: []string{"at-least"}, optional: []string{"limit", "key", "from", "to"}},
	"split": {required: []string{"region"}, optional: []string{"limit", "key", "from", "to",
		"at-least"}},
	"degraded": {optional: []string{"region", "from", "to"}},
	"in-touch": {optional: []string{"region", "from", "to"}},
	"borrows": {required: []string{"region", "after", "within"},
		optional: []string{"limit", "key"}},
	"answers": {required: []string{"within"}, optional: []string{"percent", "region", "from",
		"to"}},
	"ready": {required: []string{"region", "after", "within"}, optional: []string{"node"}},
	"alive": {},
}

// points are the points of a transfer at which a node can be told to kill itself.
var points = []string{"before-debit", "after-debit", "after-fsync", "after-reply", "before-credit",
	"after-credit"}

// between reports whether a step concerns the traffic between regions.
func (s Step) between() bool { return slices.Contains(steps[s.Do].optional, "between") }

// hasEffect reports whether a step must lose, stall or delay some traffic.
func (s Step) hasEffect() bool { return s.between() && s.Do != "heal" }
