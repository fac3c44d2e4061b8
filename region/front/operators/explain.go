package operators

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/view"
	"github.com/quotad/quotad/region/memory/rules"
)

// explain answers how a bucket stands in every region.
func (s *Server) explain(w http.ResponseWriter, r *http.Request) {
	query(w, r, func(domain string, descriptors map[string]string) (any, error) {
		return s.explained(r.Context(), place{r.PathValue("limit"), domain, descriptors})
	})
}

// explained says how a bucket stands in every region.
func (s *Server) explained(ctx context.Context, p place) (*quotadv1.ExplainResponse, error) {
	p, err := completed(s.node.Document(), p)
	if err != nil {
		return nil, err
	}
	if err := s.options.MayName(ctx, p.domain); err != nil {
		return nil, err
	}
	id, err := s.node.BucketID(p.limit, p.domain, p.descriptors)
	if err != nil {
		return nil, err
	}
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q := &quotadv1.ViewRequest{Buckets: [][]byte{[]byte(id)}, BucketsOnly: true, Explain: true}
	views := s.view(asking, q).GetBuckets() // first, for the others may take all the time
	for _, v := range s.node.AskViews(asking, q) {
		views = append(views, v.GetBuckets()...)
	}
	var order []string
	for _, r := range s.node.Document().Regions {
		order = append(order, r.Name)
	}
	now := time.Now()
	e := view.Explain(views, order, now)
	e.Limit, e.Domain = p.limit, p.domain
	ref, err := policy.ParseBucketID(id)
	window := policy.Limit{Window: ref.Window, Period: ref.Period}
	e.Descriptors, e.Window = view.Descriptors(ref), durationpb.New(window.WindowAt(now))
	if ref.Period != "" {
		e.Sentence += fmt.Sprintf(" It counts by the calendar: %s.", ref.Period.Words())
	}
	return e, err
}

// place names a bucket.
type place struct {
	limit, domain string
	descriptors   map[string]string
}

// completed fills in what a caller need not say to name a bucket: the domain, if one domain alone
// has a limit of this name, and what the limit is for (its conditions), if one entry alone fits.
// The error is an *invalid.Field that says what is missing, or rules.ErrNoSuchBucket.
func completed(d *policy.Document, p place) (place, error) {
	var fits []*policy.Limit
	domains := map[string]bool{}
	for i := range d.Limits {
		l := &d.Limits[i]
		if l.Name != p.limit || p.domain != "" && l.Domain != p.domain || contradicts(l, p.descriptors) {
			continue
		}
		domains[l.Domain] = true
		fits = append(fits, l)
	}
	switch {
	case len(fits) == 0:
		return p, rules.ErrNoSuchBucket
	case len(domains) > 1:
		return p, invalid.Fieldf("domain", "is missing; limit %s is in the domains %s", p.limit, inOrder(domains))
	case len(fits) > 1 && ambiguous(fits, p.descriptors):
		return p, invalid.Fieldf("descriptors", "fit %d entries of limit %s; name what they are for (match) as well", len(fits), p.limit)
	}
	p.domain = fits[0].Domain
	if len(fits) == 1 {
		filled := maps.Clone(p.descriptors)
		for _, c := range fits[0].Match {
			filled[c.Name] = c.Value
		}
		p.descriptors = filled
	}
	for _, name := range fits[0].Key {
		if _, given := p.descriptors[name]; !given {
			return p, invalid.Fieldf("descriptors."+name, "is missing; limit %s has a bucket for each %s", p.limit, strings.Join(fits[0].Key, ", "))
		}
	}
	return p, nil
}

// contradicts reports whether a limit is for other descriptors.
func contradicts(l *policy.Limit, descriptors map[string]string) bool {
	return slices.ContainsFunc(l.Match, func(c policy.Condition) bool {
		value, given := descriptors[c.Name]
		return given && value != c.Value
	})
}

// ambiguous reports whether descriptors leave open which of several entries is meant: none of them has
// all its conditions.
func ambiguous(fits []*policy.Limit, descriptors map[string]string) bool {
	return !slices.ContainsFunc(fits, func(l *policy.Limit) bool {
		return !slices.ContainsFunc(l.Match, func(c policy.Condition) bool {
			_, given := descriptors[c.Name]
			return !given
		})
	})
}

func inOrder(names map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}
