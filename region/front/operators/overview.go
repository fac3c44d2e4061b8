package operators

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/view"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// overviewCounts is for how long an overview is told again, so that any number of consoles cost
	// a node little more than one overview a second. It is less than a second, so that who asks
	// each second is told something new each time.
	overviewCounts = 900 * time.Millisecond
	// usualHottest is how many hottest buckets an overview has if nobody says.
	usualHottest = 20
)

// overviews remembers the last overview. Safe for concurrent use.
type overviews struct {
	turn    chan struct{} // full while an overview is made; tests in virtual time see who waits
	last    *quotadv1.OverviewResponse
	hottest int       // as last was asked for
	made    time.Time // when the others were asked
}

// overview describes all nodes of all regions, as far as they answer within askTimeout. Who comes
// while one is made waits for it. While a region is silent that takes longer than overviewCounts,
// and so does not make all who waited ask again.
func (s *Server) overview(ctx context.Context, hottest int) *quotadv1.OverviewResponse {
	asked := time.Now()
	o := &s.overviews
	o.turn <- struct{}{}
	defer func() { <-o.turn }()
	if o.last != nil && o.hottest == hottest && asked.Sub(o.made) < overviewCounts {
		return o.last
	}
	asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	q := &quotadv1.ViewRequest{Hottest: int32(hottest)}
	at := time.Now()
	own := s.view(asking, q)
	status := own.GetNode().GetStatus()
	r := &quotadv1.OverviewResponse{Region: status.GetRegion(), Node: status.GetNode(),
		At: timestamppb.New(at)}
	nodes, silent := view.Nodes(append(s.node.AskViews(asking, q), own), s.node.Expected())
	r.Nodes, r.Silent = wire.Each(nodes, view.Overview), silent
	if hottest > 0 {
		r.Hottest = s.hottest(ctx, nodes, hottest)
	}
	o.last, o.hottest, o.made = r, hottest, at
	return r
}

// hottest returns the hottest buckets of all nodes, with what each region holds of them.
func (s *Server) hottest(ctx context.Context, nodes []*quotadv1.NodeView,
	most int) (all []*quotadv1.BucketSummary) {
	found := view.Hottest(nodes, most)
	q := &quotadv1.ViewRequest{BucketsOnly: true}
	for _, h := range found[:min(len(found), peer.MaxLookedAt)] {
		q.Buckets = append(q.Buckets, []byte(h.ID))
	}
	if len(q.Buckets) == 0 {
		return nil
	}
	looking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	views := []*quotadv1.View{s.view(looking, q)} // first, for the others may take all the time
	views = append(views, s.node.AskViews(looking, q)...)
	for i, h := range found[:len(q.Buckets)] {
		var parts []*quotadv1.BucketView
		for _, v := range views {
			parts = append(parts, v.GetBuckets()[i])
		}
		if one := view.Summary(h, parts); one != nil {
			all = append(all, one)
		}
	}
	return all
}

// overviewFor is overview with what this node does for rehearsals, and without the buckets and
// limits of domains that the caller may not name.
func (s *Server) overviewFor(ctx context.Context, hottest int) (*quotadv1.OverviewResponse, error) {
	if hottest < 0 || hottest > peer.MaxHottest {
		return nil, invalid.Fieldf("hottest", "must be a whole number from 0 to 100")
	}
	r := s.overview(ctx, hottest)
	shown := &quotadv1.OverviewResponse{Region: r.Region, Node: r.Node, At: r.At, Nodes: r.Nodes,
		Silent: r.Silent, Hottest: r.Hottest, Chaos: s.options.Cutter != nil}
	if s.options.Rehearsal != nil {
		shown.Loads = map[string]int64{}
		for region, perSecond := range s.options.Rehearsal.Loads() {
			shown.Loads[region] = int64(perSecond)
		}
	}
	if s.options.Guard == nil {
		return shown, nil
	}
	may := roles.From(ctx).MayName
	shown.Nodes = wire.Each(r.Nodes, func(n *quotadv1.NodeOverview) *quotadv1.NodeOverview {
		less := proto.CloneOf(n)
		less.Limits = slices.DeleteFunc(less.Limits, func(l *quotadv1.LimitView) bool { return !may(l.Domain) })
		return less
	})
	shown.Hottest = slices.DeleteFunc(slices.Clone(r.Hottest),
		func(b *quotadv1.BucketSummary) bool { return !may(b.Domain) })
	return shown, nil
}

// webOverview answers with an overview, as JSON.
func (s *Server) webOverview(w http.ResponseWriter, r *http.Request) {
	o, err := s.overviewFor(r.Context(), hottestOf(r.URL.Query()))
	wire.Reply(w, o, err)
}

// hottestOf reads how many of the hottest buckets are asked for. It returns -1 for what is no
// number.
func hottestOf(query url.Values) int {
	text := query.Get("hottest")
	if text == "" {
		return usualHottest
	}
	n, err := strconv.Atoi(text)
	if err != nil || strings.HasPrefix(text, "+") {
		return -1
	}
	return n
}
