package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/strictyaml"
)

// MaxDomainRules bounds the domains for which a document has rules.
const MaxDomainRules = 1000

// OnNoLimit says what is done with a request to which no limit applies.
type OnNoLimit string

// What to do with a request to which no limit applies.
const (
	NoLimitAllow OnNoLimit = "allow"
	// NoLimitWarn allows it and says so in the log, once a minute for each domain.
	NoLimitWarn OnNoLimit = "warn"
	NoLimitDeny OnNoLimit = "deny"
)

// Together reports whether several descriptors of one request are one decision.
type Together string

// How several descriptors of one request are decided.
const (
	// DecideTogether charges all limits of all descriptors, or none.
	DecideTogether Together = "together"
	// DecideApart decides each descriptor as a request of its own, as envoyproxy/ratelimit does:
	// what one of them denies the others are charged for all the same.
	DecideApart Together = "apart"
)

// NegativeHits says what a descriptor with is_negative_hits does.
type NegativeHits string

// What a descriptor of Envoy with is_negative_hits does.
const (
	// IgnoreHits asks, as one of 0 hits does.
	IgnoreHits NegativeHits = "ignore"
	// GiveBackHits gives back what was charged last, to whomever.
	GiveBackHits NegativeHits = "give_back"
)

// DomainRules is what holds for all requests of one domain.
type DomainRules struct {
	Name         string
	OnNoLimit    OnNoLimit
	Descriptors  Together
	NegativeHits NegativeHits
}

// Apart reports whether each descriptor of a request is decided alone.
func (r DomainRules) Apart() bool { return r.Descriptors == DecideApart }

// Domain returns the rules of a domain: those that the document gives it, or else those of all.
func (d *Document) Domain(name string) DomainRules {
	if i, found := slices.BinarySearchFunc(d.Domains, name, compareDomain); found {
		return d.Domains[i]
	}
	return DomainRules{name, d.OnNoLimit, DecideTogether, IgnoreHits}
}

func compareDomain(r DomainRules, name string) int {
	return strings.Compare(r.Name, name)
}

var domainFields = []string{"name", "on_no_limit", "descriptors", "negative_hits"}

// readDomains reads the rules of domains, sorted by name.
func readDomains(f strictyaml.Value, usual OnNoLimit) []DomainRules {
	items, ok := f.List("list domains with their rules, such as {name: api, on_no_limit: deny}")
	if !ok {
		return nil
	}
	if len(items) > MaxDomainRules {
		f.Fail(fmt.Sprintf("%d domains", len(items)), fmt.Sprintf("name at most %d", MaxDomainRules))
	}
	var all []DomainRules
	for _, item := range items {
		var r DomainRules
		o, ok := item.Object("write name, and on_no_limit, descriptors or negative_hits", domainFields)
		if !ok {
			continue
		}
		if f, ok := o.Required("name", "name the domain, such as api"); ok {
			r.Name, _ = readName(f, domainNames)
			if slices.ContainsFunc(all, func(o DomainRules) bool { return o.Name == r.Name }) {
				f.Fail(fmt.Sprintf("%q is named twice", r.Name), "write its rules in one place")
			}
		}
		r.OnNoLimit = strictyaml.Optional(o, "on_no_limit", usual, readOnNoLimit)
		r.Descriptors = strictyaml.Optional(o, "descriptors", DecideTogether,
			strictyaml.Word(DecideTogether, DecideApart))
		r.NegativeHits = strictyaml.Optional(o, "negative_hits", IgnoreHits,
			strictyaml.Word(IgnoreHits, GiveBackHits))
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b DomainRules) int { return compareDomain(a, b.Name) })
	return all
}

var readOnNoLimit = strictyaml.Word(NoLimitAllow, NoLimitWarn, NoLimitDeny)
