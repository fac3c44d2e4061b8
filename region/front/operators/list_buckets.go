package operators

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
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

// listing says which buckets a caller wants listed.
type listing struct {
	limit, domain string            // empty: any
	prefix        map[string]string // values of these descriptors begin so
	most          int               // 1 to maxListed
}

// listBuckets lists the buckets that the node was asked about lately, of domains that the caller
// may name.
func (s *Server) listBuckets(ctx context.Context,
	q listing) (*quotadv1.ListBucketsResponse, error) {
	if q.most < 1 || q.most > maxListed {
		return nil, admit.Wrong("most", "must be a whole number from 1 to %d", maxListed)
	}
	may := func(string) bool { return true }
	if s.options.Guard != nil {
		may = roles.From(ctx).MayName
	}
	all, more := s.node.ListBuckets(func(ref policy.BucketRef) bool {
		return (q.limit == "" || ref.Name == q.limit) && (q.domain == "" || ref.Domain == q.domain) &&
			may(ref.Domain) && beginsWith(ref, q.prefix)
	}, q.most)
	r := &quotadv1.ListBucketsResponse{More: more}
	for _, l := range all {
		one := &quotadv1.ListedBucket{Limit: l.Ref.Name, Domain: l.Ref.Domain,
			Descriptors: view.Descriptors(l.Ref)}
		if l.LastKnown {
			one.Last = lastMessage(l.Last, s.node.Status().Node)
		}
		r.Buckets = append(r.Buckets, one)
	}
	slices.SortFunc(r.Buckets, func(a, b *quotadv1.ListedBucket) int {
		return cmp.Or(cmp.Compare(a.Limit, b.Limit), cmp.Compare(a.Domain, b.Domain),
			cmp.Compare(view.Words(a.Descriptors), view.Words(b.Descriptors)))
	})
	return r, nil
}

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

// webListBuckets answers with a list of buckets, as JSON. Parameters but limit, domain and most are
// what the values of descriptors begin with.
func (s *Server) webListBuckets(w http.ResponseWriter, r *http.Request) {
	domain, prefix, err := parseQuery(r.URL.RawQuery)
	q := listing{prefix["limit"], domain, prefix, usualListed}
	if text, given := prefix["most"]; given {
		q.most, _ = strconv.Atoi(text)
	}
	maps.DeleteFunc(prefix, func(name, _ string) bool { return name == "limit" || name == "most" })
	var listed *quotadv1.ListBucketsResponse
	if err == nil {
		listed, err = s.listBuckets(r.Context(), q)
	}
	wire.Reply(w, listed, err)
}
