package operators

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/view"
	"github.com/quotad/quotad/region/front/wire"
)

const (
	// maxListed bounds the buckets that one list has, and usualListed is how many it has if nobody
	// says.
	maxListed   = 1000
	usualListed = 100
)

// beginsWith reports whether each named value of a bucket's key begins so.
func beginsWith(ref policy.BucketRef, prefix map[string]string) bool {
	for name, begins := range prefix {
		if !slices.ContainsFunc(ref.Key, func(kv policy.KeyValue) bool {
			return kv.Name == name && strings.HasPrefix(kv.Value, begins)
		}) {
			return false
		}
	}
	return true
}

// buckets lists the buckets that the node was asked about lately, of domains that the caller may name.
// Parameters but limit, domain and most are what the values of descriptors begin with.
func (s *Server) buckets(w http.ResponseWriter, r *http.Request) {
	query(w, r, func(domain string, prefix map[string]string) (any, error) {
		limit, most := prefix["limit"], usualListed
		if text, given := prefix["most"]; given {
			most, _ = strconv.Atoi(text)
		}
		if most < 1 || most > maxListed {
			return nil, invalid.Fieldf("most", "must be a whole number from 1 to %d", maxListed)
		}
		delete(prefix, "limit")
		delete(prefix, "most")
		may := func(string) bool { return true }
		if s.options.Guard != nil {
			may = roles.From(r.Context()).MayName
		}
		all, more := s.node.ListBuckets(func(ref policy.BucketRef) bool {
			return (limit == "" || ref.Name == limit) && (domain == "" || ref.Domain == domain) &&
				may(ref.Domain) && beginsWith(ref, prefix)
		}, most)
		list := &quotadv1.ListBucketsResponse{More: more}
		for _, l := range all {
			one := &quotadv1.ListedBucket{Limit: l.Ref.Name, Domain: l.Ref.Domain,
				Descriptors: view.Descriptors(l.Ref)}
			if l.LastKnown {
				one.Last = lastMessage(l.Last, s.node.Status().Node)
			}
			list.Buckets = append(list.Buckets, one)
		}
		slices.SortFunc(list.Buckets, func(a, b *quotadv1.ListedBucket) int {
			return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Domain, b.Domain),
				cmp.Compare(view.Words(a.Descriptors), view.Words(b.Descriptors)))
		})
		return list, nil
	})
}

// bucket answers with the ledger of a bucket in this region.
func (s *Server) bucket(w http.ResponseWriter, r *http.Request) {
	query(w, r, func(domain string, descriptors map[string]string) (any, error) {
		if err := s.options.MayName(r.Context(), domain); err != nil {
			return nil, err
		}
		b, err := s.node.Bucket(r.Context(), r.PathValue("limit"), domain, descriptors)
		if err != nil {
			return nil, err
		}
		return bucketMessage(b), nil
	})
}

// query reads a domain and descriptors, and answers with what there is about them.
func query(w http.ResponseWriter, r *http.Request,
	about func(domain string, descriptors map[string]string) (any, error)) {
	domain, descriptors, err := parseQuery(r.URL.RawQuery)
	var found any
	if err == nil {
		found, err = about(domain, descriptors)
	}
	wire.Reply(w, found, err)
}

// parseQuery reads a domain and descriptors. Every error is an *invalid.Field.
func parseQuery(raw string) (domain string, descriptors map[string]string, err error) {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return "", nil, invalid.Fieldf("query", "is malformed; write it as ?domain=api&account=42, percent-encoded")
	}
	descriptors = map[string]string{}
	for name, values := range query {
		field := "descriptors." + name
		if name == "domain" {
			field = name
		}
		switch {
		case len(values) > 1:
			return "", nil, invalid.Fieldf(field, "is given more than once")
		case !utf8.ValidString(name) || !utf8.ValidString(values[0]):
			return "", nil, invalid.Fieldf(field, "is not valid UTF-8")
		case name == "domain":
			domain = values[0]
		default:
			descriptors[name] = values[0]
		}
	}
	return domain, descriptors, nil
}
