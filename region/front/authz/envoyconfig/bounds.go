package envoyconfig

import (
	"slices"
	"time"

	"github.com/quotad/quotad/policy"
)

// bound is a local bucket for each value of the lists that have these entries.
type bound struct {
	entries []policy.Entry
	bucket  policy.LocalBound
	none    string // why there is no bucket; empty: there is one
	of      string
}

// boundsOf returns the bounds of a domain's limits, as Envoy can have them, for decisions that take
// wait at most.
//
// Envoy takes any one of the bounds that fit a list. So where several do, each has a bucket that is
// large enough for all of them, or none has one; and where they fit the same lists, and so all of
// their limits apply, there is the smallest.
func boundsOf(d *policy.Document, domain string, wait time.Duration) []bound {
	var all []bound
	for i := range d.Limits {
		if l := &d.Limits[i]; l.Domain == domain {
			all = append(all, boundOf(d, l, wait))
		}
	}
	for _, e := range d.Exempt {
		denies := e.Deny && !e.Alternative && !replaced(d, domain, e.Alias)
		if e.Domain == domain && !denies {
			all = append(all, bound{entries: e.Entries, none: "it does not deny whatever else applies", of: "an exemption"})
		}
	}
	made := make([]bound, len(all))
	for i, b := range all {
		made[i] = b
		for _, other := range all {
			if !same(b.entries, other.entries) && meet(b.entries, other.entries) {
				made[i] = larger(made[i], other)
			}
		}
	}
	return smallest(made)
}

// boundOf returns the bound of one limit.
func boundOf(d *policy.Document, l *policy.Limit, wait time.Duration) bound {
	b := bound{entries: arranged(d, l), of: "limit " + l.Name}
	bucket, ok := l.LocalBound(wait)
	switch {
	case !ok:
		b.none = "it denies nothing by itself, or not without its store"
	case slices.ContainsFunc(b.entries, func(e policy.Entry) bool { return e.Pattern }):
		b.none = "Envoy's local bounds know no patterns of values"
	case replaced(d, l.Domain, l.Alias):
		b.none = "others replace it"
	}
	if b.none == "" {
		b.bucket = bucket
	}
	return b
}

// replaced reports whether a limit or an exemption of the domain replaces what has an alias.
func replaced(d *policy.Document, domain, alias string) bool {
	return slices.ContainsFunc(d.Limits, func(o policy.Limit) bool {
		return o.Domain == domain && slices.Contains(o.Replaces, alias)
	}) || slices.ContainsFunc(d.Exempt, func(e policy.Exemption) bool {
		return e.Domain == domain && slices.Contains(e.Replaces, alias)
	})
}

// same reports whether two paths fit the same lists.
func same(a, b []policy.Entry) bool {
	return slices.EqualFunc(a, b, func(a, b policy.Entry) bool { return a == b })
}

// meet reports whether some list fits both paths.
func meet(a, b []policy.Entry) bool { return slices.EqualFunc(a, b, policy.Entry.Meets) }

// larger returns a bound that denies nothing that either of two admits.
func larger(b, other bound) bound {
	switch {
	case b.none != "":
	case other.none != "":
		b.none = "the same requests may meet " + other.of + ", which has none"
	default:
		b.bucket.Tokens = max(b.bucket.Tokens, other.bucket.Tokens)
		if slower(b.bucket, other.bucket) {
			b.bucket.TokensPerFill, b.bucket.FillInterval = other.bucket.TokensPerFill, other.bucket.FillInterval
		}
	}
	return b
}

// slower reports whether a bucket is refilled more slowly than another.
func slower(a, b policy.LocalBound) bool {
	return float64(a.TokensPerFill)/float64(a.FillInterval) < float64(b.TokensPerFill)/float64(b.FillInterval)
}

// smallest returns the bounds, of those for the same lists the one that is refilled the most slowly.
func smallest(all []bound) (kept []bound) {
	for _, b := range all {
		i := slices.IndexFunc(kept, func(k bound) bool {
			return b.none == "" && k.none == "" && same(k.entries, b.entries)
		})
		if i < 0 {
			kept = append(kept, b)
		} else if slower(b.bucket, kept[i].bucket) {
			kept[i] = b
		}
	}
	return kept
}
