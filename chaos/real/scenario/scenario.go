package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// Scenario is a valid scenario. It never changes after [Parse].
type Scenario struct {
	Name, About string
	Rows        []int
	Duration    time.Duration
	Regions     []Region // in the order of the file
	Load        []Load
	Steps       []Step // by time
	Expect      []Expectation

	limits, added string // text of the entries
	document      *policy.Document
}

// Region is a region, with its weight in the document, its nodes, and the Envoys that ask nobody:
// nodes assign them parts of limits (RLQS).
type Region struct {
	Name   string
	Weight int64
	Nodes  int
	Envoys int
}

// Load is a load offered to a region.
type Load struct {
	Region, Limit string
	Key           []string
	Rate, Cost    int64 // units a second, and units of a request
	From, To      time.Duration
	Envoys        []int // of the region, from 1, to which it goes in turn; empty: to its nodes
}

// Step is one step. Fields that its word does not take are zero.
type Step struct {
	At      time.Duration
	Do      string
	Between []string // never empty if the step concerns traffic between regions
	And     []string
	OneWay  bool
	Only    string // udp or tcp; both if empty
	Region  string
	Node    int // from 1; 0: all
	Envoy   int // likewise
	Limit   string
	Key     []string
	Rate    int64
	By, For time.Duration
	Every   time.Duration
	Percent int
	Points  []string
	Times   int
	Weights map[string]int64

	pos strictyaml.Position
}

// Expectation is one expectation of a run. Fields that its word does not take are zero.
type Expectation struct {
	That          string
	Limit         string
	Key           []string
	Region        string
	Node          int
	From, To      time.Duration // To is never zero
	After, Within time.Duration
	AtLeast       int64 // percent
	Above         int64 // units
	Percent       int64 // percent
	Despite       []Mishap

	pos strictyaml.Position
}

// Mishap names one line of the output of quotad limits bound.
type Mishap struct{ Cause, When, Region string }

// String returns the mishap as it is printed.
func (m Mishap) String() string { return m.Cause + " (" + m.When + ")" }

// Document returns the text of the limits document of a version. Regions that weights does not name
// have their own weights. From version 2 it includes the entries of added.
func (s *Scenario) Document(version int64, weights map[string]int64) string {
	text := s.head(version, weights) + s.limits
	if version > 1 {
		text += s.added
	}
	return text
}

// head returns a document without its limits.
func (s *Scenario) head(version int64, weights map[string]int64) string {
	var b strings.Builder
	fmt.Fprintf(&b, "version: %d\nregions:\n", version)
	for _, r := range s.Regions {
		weight, given := weights[r.Name]
		if !given {
			weight = r.Weight
		}
		fmt.Fprintf(&b, "  %s: {weight: %d}\n", r.Name, weight)
	}
	return b.String()
}

// region returns the region with a name, or nil.
func (s *Scenario) region(name string) *Region {
	for i := range s.Regions {
		if s.Regions[i].Name == name {
			return &s.Regions[i]
		}
	}
	return nil
}

func (s *Scenario) regionNames() []string {
	names := make([]string, len(s.Regions))
	for i, r := range s.Regions {
		names[i] = r.Name
	}
	return names
}

// limit returns the limit with a name, or nil.
func (s *Scenario) limit(name string) *policy.Limit {
	for i := range s.document.Limits {
		if s.document.Limits[i].Name == name {
			return &s.document.Limits[i]
		}
	}
	return nil
}

func (s *Scenario) limitNames() []string {
	var names []string
	for _, l := range s.document.Limits {
		if !slices.Contains(names, l.Name) {
			names = append(names, l.Name)
		}
	}
	return names
}

// Watched returns the buckets that have load, in the order of the file.
func (s *Scenario) Watched() []Bucket {
	var all []Bucket
	for _, l := range s.Load {
		b := Bucket{Limit: l.Limit, Key: strings.Join(l.Key, ","), Apart: s.apart()}
		if slices.ContainsFunc(all, func(o Bucket) bool { return o.Name() == b.Name() }) {
			continue
		}
		entry := s.limit(l.Limit)
		b.Algorithm, b.Units, b.Burst, b.Window = string(entry.Algorithm), int64(entry.Limit),
			int64(entry.Burst), entry.Window
		if c, ok := entry.Calendar(); ok {
			b.Calendar = &oracle.Calendar{Unit: string(c.Unit), Zone: c.Zone, Weekday: c.Weekday,
				Month: c.Month, Day: c.Day}
		}
		b.Assigned = entry.Assign != nil && entry.Algorithm == policy.TokenBucket
		b.Splits = map[string]int64{}
		total := quantity.Units(0)
		for _, w := range entry.Weights {
			total += w
		}
		for i, r := range s.document.Regions {
			b.Splits[r.Name] = int64((entry.Limit*entry.Weights[i] + total - 1) / total)
		}
		all = append(all, b)
	}
	return all
}

// apart returns the farthest that steps move a clock from this machine's.
func (s *Scenario) apart() (most time.Duration) {
	ahead := map[string]time.Duration{}
	for _, step := range s.Steps {
		if step.Do == "clock" {
			ahead[step.Region] += step.By
			most = max(most, ahead[step.Region].Abs())
		}
	}
	return most
}

// Bucket is a limit applied to a key.
type Bucket struct {
	Limit, Key   string
	Algorithm    string
	Units, Burst int64
	Window       time.Duration
	Calendar     *oracle.Calendar // of windows that count by one; nil: of the others
	// Splits are the fixed splits of the regions, rounded up.
	Splits map[string]int64
	// Assigned says that the cells of a token_bucket are those of a limit with assign.
	Assigned bool
	// Apart is how far steps move the clock of a region's store.
	Apart time.Duration
}

// Name returns the bucket's name in a record.
func (b Bucket) Name() string { return b.Limit + "/" + b.Key }

// clockSlack is how far the clocks of a store and of the driver may be apart. On one machine they
// are the same.
const clockSlack = 5 * time.Millisecond

// judged returns the limit that the bucket is judged by.
func (b Bucket) judged() oracle.Limit {
	return oracle.Limit{Limit: b.Units, Burst: b.Burst, Window: b.Window, Algorithm: b.Algorithm,
		Assigned: b.Assigned,
		Calendar: b.Calendar, ClockSlack: clockSlack + b.Apart,
		Settle: oracle.DefaultSettle + 2*b.Apart}
}

// question returns the request of a load.
func (s *Scenario) question(l Load) Question {
	entry := s.limit(l.Limit)
	q := Question{Domain: entry.Domain, Descriptors: map[string]string{}, Cost: l.Cost,
		Envoys: l.Envoys}
	for i, name := range entry.Key {
		q.Descriptors[name] = l.Key[i]
	}
	for _, c := range entry.Match {
		q.Descriptors[c.Name] = c.Value
	}
	for _, b := range s.Watched() {
		if b.Limit == l.Limit && b.Key == strings.Join(l.Key, ",") {
			q.Bucket, q.Limit = b.Name(), b.judged()
		}
	}
	return q
}
