//go:build !race

package reference

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Source draws configurations, and requests that meet them. Everything follows from Dice.
type Source struct {
	Dice Dice
	// MaxDepth bounds the entries of a path. It is 4 if it is 0.
	MaxDepth int
	// Zeros draws hits_addend 0 for single descriptors, which asks and charges nothing.
	Zeros bool
	// Negative draws is_negative_hits for single descriptors.
	Negative bool
	// None draws limits of 0 requests, limits of both modes, and more names and replaces.
	None bool
	// Inner draws values with a * before their end, which newer ones of envoyproxy/ratelimit know.
	Inner bool
	// Older draws no metadata, which older ones of envoyproxy/ratelimit do not load.
	Older bool
	// Nested draws mappings in metadata. envoyproxy/ratelimit changes those of its limits while it
	// merges them.
	Nested bool
	// One draws requests of which each descriptor costs 1.
	One bool
}

// Dice are random numbers, such as a *rand.Rand of math/rand/v2.
type Dice interface {
	IntN(n int) int // from 0 to n-1
}

// The words are few, so that requests meet descriptors, and one prefix is that of another. None has
// a _ or ends with a *, so that both habits named in the package comment make no difference.
var (
	keys    = []string{"a", "b", "c/d", "e.f"}
	values  = []string{"x", "xy", "xyz", "y", "yz", "", "8080", "true", "a: b"}
	starts  = []string{"*", "x*", "xy*", "y*"}
	inner   = []string{"x*z", "*z", "x*y*", "*y"}
	names   = []string{"n1", "n2", "n3"}
	units   = []string{"second", "minute", "hour", "day", "week", "month", "year"}
	domains = []string{"edge", "edge.internal", "7"}
)

// one says yes in one of n cases.
func (s Source) one(n int) bool { return s.Dice.IntN(n) == 0 }

func pick[T any](s Source, from []T) T { return from[s.Dice.IntN(len(from))] }

// Files draws the files of a configuration, each of a domain of its own. envoyproxy/ratelimit loads
// them, and quotad imports them. There is at least one limit that is not unlimited.
func (s Source) Files() []Root {
	roots := make([]Root, 1+s.Dice.IntN(2))
	for i := range roots {
		roots[i] = Root{domains[i], s.descriptors(1)}
	}
	roots[0].Descriptors = append(roots[0].Descriptors, Descriptor{Key: "always",
		RateLimit: &RateLimit{Unit: pick(s, units), RequestsPerUnit: new(uint32(1 + s.Dice.IntN(8)))}})
	return roots
}

// descriptors draws siblings.
func (s Source) descriptors(depth int) (all []Descriptor) {
	for range 1 + s.Dice.IntN(5) {
		d := Descriptor{Key: pick(s, keys)}
		switch s.Dice.IntN(3) {
		case 0:
			d.Value = pick(s, values)
		case 1:
			d.Value, d.ShareThreshold = pick(s, s.several()), s.one(2)
		}
		same := func(o Descriptor) bool { return o.Key == d.Key && o.Value == d.Value }
		if slices.ContainsFunc(all, same) {
			continue
		}
		s.fill(&d, depth)
		all = append(all, d)
	}
	return all
}

// fill draws what a descriptor has beside its key. One with a * has a limit: quotad puts those
// without behind the others, and refuses a configuration in which that would matter.
func (s Source) fill(d *Descriptor, depth int) {
	several := strings.Contains(d.Value, "*")
	if several || !s.one(4) {
		d.RateLimit = s.rateLimit(several)
	}
	if depth < cmp.Or(s.MaxDepth, 4) && s.one(2) {
		d.Descriptors = s.descriptors(depth + 1)
	}
	d.DetailedMetric, d.ValueToMetric = s.one(8), s.one(8)
	if s.one(3) && !s.Older {
		d.Metadata = s.metadata(6)
	}
	if d.RateLimit != nil && !d.RateLimit.Unlimited {
		switch s.Dice.IntN(6) {
		case 0:
			d.ShadowMode = true
		case 1, 2:
			d.QuotaMode = true
			d.ShadowMode = s.None && s.one(40) // the import refuses it
		}
	}
}

// metadata draws a mapping with few names, so that several limits have one, of at most so many levels.
func (s Source) metadata(most int) map[string]any {
	all := map[string]any{}
	for range s.Dice.IntN(4) {
		name := pick(s, []string{"owner", "tier", "route"})
		if s.Nested && most > 1 && s.one(2) {
			all[name] = s.metadata(most - 1)
		} else {
			all[name] = pick(s, []any{"someone", "1", 7, -2.5, true, false, nil, []any{"a", 1}, []any{}})
		}
	}
	return all
}

func (s Source) rateLimit(limited bool) *RateLimit {
	l := &RateLimit{}
	if !limited && s.one(6) {
		l.Unlimited = true
	} else {
		l.Unit, l.RequestsPerUnit = pick(s, units), new(uint32(1+s.Dice.IntN(8)))
		if s.None && s.one(5) {
			*l.RequestsPerUnit = 0
		}
		if s.one(3) || s.None && s.one(2) {
			l.Name = pick(s, names)
		}
	}
	if name := pick(s, names); (s.one(5) || s.None && s.one(4)) && name != l.Name {
		l.Replaces = []Replaces{{name}}
	}
	return l
}

// several returns the values with a * that may be drawn.
func (s Source) several() []string {
	if s.Inner && s.one(2) {
		return inner
	}
	return starts
}

// Texts returns the files as YAML.
func Texts(roots []Root) ([][]byte, error) {
	all := make([][]byte, len(roots))
	for i, root := range roots {
		text, err := yaml.Marshal(root)
		if err != nil {
			return nil, fmt.Errorf("write configuration: %w", err)
		}
		all[i] = text
	}
	return all, nil
}

// Request draws a request. Most of its descriptors walk the tree of a file, some leave it, end
// early or go on behind a leaf. Some requests have a domain that no file has.
func (s Source) Request(roots []Root) *rlsv3.RateLimitRequest {
	root := pick(s, roots)
	r := &rlsv3.RateLimitRequest{Domain: root.Domain}
	if s.one(20) {
		r.Domain = "unknown"
	}
	if !s.One && s.one(3) {
		r.HitsAddend = uint32(s.Dice.IntN(5))
	}
	for range 1 + s.Dice.IntN(3) {
		if len(r.Descriptors) > 0 && s.one(8) {
			r.Descriptors = append(r.Descriptors, r.Descriptors[0])
			continue
		}
		d := &ratelimitv3.RateLimitDescriptor{Entries: s.entries(root.Descriptors)}
		s.cost(d)
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

// cost draws what a descriptor costs, if it says so itself.
func (s Source) cost(d *ratelimitv3.RateLimitDescriptor) {
	if s.One {
		if s.one(4) {
			d.HitsAddend = wrapperspb.UInt64(1)
		}
		return
	}
	if s.one(4) {
		least := 1
		if s.Zeros {
			least = 0
		}
		d.HitsAddend = wrapperspb.UInt64(uint64(least + s.Dice.IntN(6)))
	}
	d.IsNegativeHits = s.Negative && s.one(16)
}

// entries draws the entries of a descriptor, at least one.
func (s Source) entries(siblings []Descriptor) (all []*ratelimitv3.RateLimitDescriptor_Entry) {
	for len(all) == 0 || len(siblings) > 0 && !s.one(4) {
		key, value := pick(s, keys), pick(s, values)
		var below []Descriptor
		if len(siblings) > 0 && !s.one(10) {
			d := pick(s, siblings)
			key, below = d.Key, d.Descriptors
			if strings.Contains(d.Value, "*") {
				value = strings.ReplaceAll(d.Value, "*", pick(s, values))
			} else if d.Value != "" && !s.one(6) {
				value = d.Value
			}
		}
		all = append(all, &ratelimitv3.RateLimitDescriptor_Entry{Key: key, Value: value})
		siblings = below
	}
	if s.one(10) {
		all = append(all, &ratelimitv3.RateLimitDescriptor_Entry{Key: all[0].Key, Value: pick(s, values)})
	}
	return all
}

// Pause draws the time until the next request: mostly none or a second, so that windows fill, and
// sometimes a part of a second, a minute, an hour, a day, or a month.
func (s Source) Pause() time.Duration {
	const day = 24 * time.Hour
	return pick(s, []time.Duration{0, 0, 0, 0, time.Second, time.Second, 300 * time.Millisecond,
		59 * time.Second, time.Minute, time.Hour, day, 40 * day})
}
