package view

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// in is a region with a share of 400 of 1,000 units.
func in(region string, used int64) *quotadv1.BucketView {
	return &quotadv1.BucketView{Region: region, Node: "n1", Ledger: &quotadv1.BucketResponse{
		LimitUnits: 1000, Algorithm: "fixed_window", Entitlement: 400, Share: 400, Used: used,
		Free: 400 - used}}
}

// with changes a view.
func with(v *quotadv1.BucketView, change func(*quotadv1.BucketView)) *quotadv1.BucketView {
	change(v)
	return v
}

// last is the last request of a view, some time ago.
func last(ago time.Duration, allowed bool, why quotadv1.Reason) *quotadv1.LastRequest {
	return &quotadv1.LastRequest{At: timestamppb.New(now.Add(-ago)), Node: "n1", Allowed: allowed,
		Reason: why}
}

func TestSentences(t *testing.T) {
	denied := func(ago time.Duration, why quotadv1.Reason) func(*quotadv1.BucketView) {
		return func(v *quotadv1.BucketView) {
			v.Last = last(ago, false, why)
			v.Now = &quotadv1.Decision{RetryAfter: durationpb.New(70 * time.Second)}
		}
	}
	for name, c := range map[string]struct {
		views []*quotadv1.BucketView
		want  string
	}{
		"nothing known": {[]*quotadv1.BucketView{in("eu-west", 0), in("us-east", 10)},
			"No node remembers a request on this bucket. Worldwide 10 of 1000 units are used."},
		"nobody answered": {nil, "No node remembers a request on this bucket."},
		"admitted": {[]*quotadv1.BucketView{in("eu-west", 0),
			with(in("us-east", 10), func(v *quotadv1.BucketView) {
				v.Last = last(0, true, quotadv1.Reason_REASON_WITHIN_LIMIT)
				v.Now = &quotadv1.Decision{Allowed: true}
			})},
			"The last request, just now in us-east, was admitted: it fitted; of the 400 units that us-east holds now 10 are used. " +
				"Worldwide 10 of 1000 units are used. A request of one unit would be admitted in us-east now."},
		"used up here": {[]*quotadv1.BucketView{in("us-east", 100),
			with(in("eu-west", 400), denied(2*time.Second, quotadv1.Reason_REASON_OVER_LIMIT))},
			"The last request, 2s ago in eu-west, was denied: it cost more than eu-west had left; of the 400 units that eu-west holds now 400 are used. " +
				"Worldwide 500 of 1000 units are used. Other regions hold unused units (us-east 300), which move as far as they do not expect to need them. " +
				"A request of one unit would be denied in eu-west now, and told to come again in 1m10s, at 12:01:10 UTC."},
		"used up everywhere": {[]*quotadv1.BucketView{in("us-east", 400),
			with(in("eu-west", 600), denied(time.Minute, quotadv1.Reason_REASON_OVER_LIMIT))},
			"The last request, 1m ago in eu-west, was denied: it cost more than eu-west had left; of the 400 units that eu-west holds now 600 are used. " +
				"All 1000 units of the limit are used worldwide. " +
				"A request of one unit would be denied in eu-west now, and told to come again in 1m10s, at 12:01:10 UTC."},
		"owes": {[]*quotadv1.BucketView{in("us-east", 100),
			with(with(in("eu-west", 412), denied(2*time.Second, quotadv1.Reason_REASON_OVER_LIMIT)),
				func(v *quotadv1.BucketView) { v.Ledger.Free, v.Ledger.Owed = 0, new(int64(12)) })},
			"The last request, 2s ago in eu-west, was denied: it cost more than eu-west had left; of the 400 units that eu-west holds now 412 are used. " +
				"eu-west owes 12, which were charged although they did not fit (charge: always). Nothing fits there until that is covered. " +
				"Worldwide 512 of 1000 units are used. Other regions hold unused units (us-east 300), which move as far as they do not expect to need them. " +
				"A request of one unit would be denied in eu-west now, and told to come again in 1m10s, at 12:01:10 UTC."},
		"one class has used its part": {[]*quotadv1.BucketView{in("us-east", 100),
			with(with(in("eu-west", 240), denied(2*time.Second, quotadv1.Reason_REASON_OVER_LIMIT)),
				func(v *quotadv1.BucketView) {
					v.Now = &quotadv1.Decision{Allowed: true}
					v.Ledger.Classes = &quotadv1.ClassRooms{By: "priority", All: []*quotadv1.ClassRoom{
						{Class: "batch", MayUse: 240}, {Class: "interactive", MayUse: 400, Free: 160}}}
				})},
			"The last request, 2s ago in eu-west, was denied: it cost more than eu-west had left, or left for its class; of the 400 units that eu-west holds now 240 are used. " +
				"160 units are free there, and not for batch (up to 240). " +
				"Worldwide 340 of 1000 units are used. Other regions hold unused units (us-east 300), which move as far as they do not expect to need them. " +
				"A request of one unit would be admitted in eu-west now."},
		"cut off": {[]*quotadv1.BucketView{
			with(with(in("eu-west", 400), denied(time.Second, quotadv1.Reason_REASON_OVER_LIMIT)),
				func(v *quotadv1.BucketView) {
					v.Now = nil
					v.Last.FromMemory = new(true)
					v.Degraded = []*quotadv1.DegradedTowards{
						{Region: "us-east", Since: timestamppb.New(now.Add(-time.Hour))}, {Region: "ap-south"}}
				})},
			"The last request, 1s ago in eu-west, was denied: it cost more than eu-west had left; of the 400 units that eu-west holds now 400 are used. " +
				"Node n1 remembered that and did not ask the store again. " +
				"eu-west cannot reach us-east (since 11:00:00 UTC) and ap-south, so it keeps to its fixed split of 400 and what was lent before. " +
				"In the regions that answered 400 of 1000 units are used; us-east did not answer."},
		"closed after a loss": {[]*quotadv1.BucketView{in("us-east", 0),
			with(with(in("eu-west", 0), denied(time.Second, quotadv1.Reason_REASON_RECOVERING)),
				func(v *quotadv1.BucketView) {
					v.ClosedUntil = timestamppb.New(now.Add(70 * time.Second))
				})},
			"The last request, 1s ago in eu-west, was denied: the region's store lost its data, and what was used before may still count. " +
				"The bucket is closed until 2026-11-23T12:01:10Z. Worldwide 0 of 1000 units are used. " +
				"A request of one unit would be denied in eu-west now, and told to come again in 1m10s, at 12:01:10 UTC."},
		"for days": {[]*quotadv1.BucketView{with(in("eu-west", 1000), func(v *quotadv1.BucketView) {
			denied(time.Second, quotadv1.Reason_REASON_NEVER)(v)
			v.Now.RetryAfter = durationpb.New(50*time.Hour + time.Minute)
		}), in("us-east", 0)},
			"The last request, 1s ago in eu-west, was denied: it cost more than the whole limit of 1000. " +
				"All 1000 units of the limit are used worldwide. " +
				"A request of one unit would be denied in eu-west now, and told to come again in 2d2h, at 2026-11-25 14:01:00 UTC."},
		"the store does not answer": {[]*quotadv1.BucketView{in("us-east", 0), {Region: "eu-west",
			Problem: "no answer", Last: last(0, true, quotadv1.Reason_REASON_STORE_FAILURE_LOCAL)}},
			"The last request, just now in eu-west, was admitted: the region's store did not answer, and node n1 had room in its own part (on_store_failure: local). " +
				"Worldwide 0 of 1000 units are used."},
	} {
		got := Explain(c.views, []string{"us-east", "eu-west"}, now).GetSentence()
		if got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestWhatIsOwed: it is told of each region and of all together if the limit is charged always, and
// nothing is told of others.
func TestWhatIsOwed(t *testing.T) {
	owing := func(region string, units int64) *quotadv1.BucketView {
		return with(in(region, 400+units), func(v *quotadv1.BucketView) { v.Ledger.Owed = &units })
	}
	silent := &quotadv1.BucketView{Region: "ap-south", Problem: "no answer"}
	order := []string{"us-east", "eu-west", "ap-south"}
	e := Explain([]*quotadv1.BucketView{owing("us-east", 5), owing("eu-west", 0), silent}, order, now)
	if r := e.Regions; e.Owed == nil || e.GetOwed() != 5 || r[0].GetOwed() != 5 || r[1].Owed == nil || r[1].GetOwed() != 0 ||
		r[2].Owed != nil {
		t.Errorf("%v", e)
	}
	if e := Explain([]*quotadv1.BucketView{owing("us-east", 0)}, order, now); e.Owed == nil || e.GetOwed() != 0 {
		t.Errorf("a bucket that owes nothing: %v", e)
	}
	if e := Explain([]*quotadv1.BucketView{in("us-east", 400), silent}, order, now); e.Owed != nil || e.Regions[0].Owed != nil {
		t.Errorf("a bucket that cannot owe: %v", e)
	}
}

// TestEveryReasonHasItsWords: no reason of a denial is left without words.
func TestEveryReasonHasItsWords(t *testing.T) {
	for number, name := range quotadv1.Reason_name {
		why := quotadv1.Reason(number)
		switch why {
		case quotadv1.Reason_REASON_UNSPECIFIED, quotadv1.Reason_REASON_NO_LIMIT,
			quotadv1.Reason_REASON_INVALID_REQUEST, quotadv1.Reason_REASON_DENIED:
			continue // no bucket is concerned
		}
		if text := because(inRegion(in("eu-west", 3)), last(0, false, why), 1000); !strings.HasPrefix(text, ": ") {
			t.Errorf("%s has no words: %q", name, text)
		}
	}
}

// TestAViewOfEachRegion: of several nodes of a region the one with a ledger, the last request of
// all, and what they hold together.
func TestAViewOfEachRegion(t *testing.T) {
	one := &quotadv1.BucketView{Region: "eu-west", Node: "n1", Problem: "no answer", PrefetchedUnits: 3,
		RememberDenial: []string{"n1"}, Last: last(time.Second, true, quotadv1.Reason_REASON_WITHIN_LIMIT)}
	two := with(in("eu-west", 7), func(v *quotadv1.BucketView) {
		v.Node, v.PrefetchedUnits, v.RememberDenial = "n2", 4, []string{"n2"}
		v.Last = last(2*time.Second, false, quotadv1.Reason_REASON_OVER_LIMIT)
		v.Degraded = []*quotadv1.DegradedTowards{{Region: "us-east"}}
	})
	all := ByRegion([]*quotadv1.BucketView{one, in("ap-south", 1), two})
	if len(all) != 2 || all[0].Region != "ap-south" {
		t.Fatalf("%v", all)
	}
	if v := all[1]; v.Node != "n2" || v.Problem != "" || v.Ledger.GetUsed() != 7 ||
		v.PrefetchedUnits != 7 || !v.Last.Allowed || len(v.Degraded) != 1 ||
		!slices.Equal(v.RememberDenial, []string{"n1", "n2"}) {
		t.Errorf("%v", v)
	}
}

// TestNodesOfAnOverview: each node once, and who is silent.
func TestNodesOfAnOverview(t *testing.T) {
	told := func(region, node string) *quotadv1.View {
		return &quotadv1.View{Node: &quotadv1.NodeView{Status: &quotadv1.StatusResponse{Region: region,
			Node: node}}}
	}
	nodes, silent := Nodes([]*quotadv1.View{told("us-east", "n2"), told("eu-west", "n1"),
		told("us-east", "n2"), {}}, []string{"us-east/n2", "us-east/n1", "eu-west", "ap-south"})
	var names []string
	for _, n := range nodes {
		names = append(names, Name(n))
	}
	if got, want := fmt.Sprint(names, silent), "[eu-west/n1 us-east/n2] [ap-south us-east/n1]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestTheHottestOfAllNodes: units of a bucket add up over nodes, and what regions hold of it.
func TestTheHottestOfAllNodes(t *testing.T) {
	id := policy.BucketRef{Domain: "api", Name: "a", Algorithm: policy.FixedWindow, Window: time.Minute,
		Key: []policy.KeyValue{{Name: "account", Value: "4\xff"}}}.ID()
	node := func(units int64) *quotadv1.NodeView {
		return &quotadv1.NodeView{Hottest: []*quotadv1.HotBucket{{Bucket: []byte(id),
			AdmittedUnits: units, DeniedUnits: 1, MissedUnits: 2}, {Bucket: []byte("b"), AdmittedUnits: 6}}}
	}
	hot := Hottest([]*quotadv1.NodeView{node(5), node(8)}, 1)
	if len(hot) != 1 || hot[0].ID != string(id) || hot[0].Units.Admitted != 13 || hot[0].Missed != 4 {
		t.Fatalf("%+v", hot)
	}
	s := Summary(hot[0], []*quotadv1.BucketView{in("us-east", 3), in("eu-west", 4), in("eu-west", 4),
		{Region: "ap-south", Problem: "no answer"}})
	if s.GetLimit() != "a" || s.GetUsed() != 7 || len(s.GetParts()) != 2 || s.GetLimitUnits() != 1000 ||
		Words(s.GetDescriptors()) != "account=4\uFFFD" || s.GetDeniedUnits() != 2 {
		t.Errorf("%v", s)
	}
	if Summary(hot[0], nil).GetLimit() != "a" {
		t.Error("nobody told what it holds")
	}
	hot[0].ID = "b"
	if s := Summary(hot[0], nil); s != nil {
		t.Errorf("%v of no bucket", s)
	}
}

// TestOverviewOfANode: counts and words in place of lists, and nothing of what a node did not tell.
func TestOverviewOfANode(t *testing.T) {
	if o := Overview(&quotadv1.NodeView{}); o.GetJournal() != "not_whole" || o.GetStore() == nil ||
		o.NotReady != nil || o.FileRefused != nil || o.GetStore().Stopped != nil {
		t.Errorf("%v", o)
	}
	s := &quotadv1.StatusResponse{Region: "eu-west", Node: "n1", NotReady: new("no store"),
		Mates:    []string{"eu-west/n2", "eu-west/n3"},
		Recovery: &quotadv1.RecoveryStatus{Waiting: 4}, Local: &quotadv1.LocalStatus{Unbooked: 5},
		Journal: &quotadv1.JournalStatus{Whole: true},
		Store: &quotadv1.StoreStatus{OutOfReach: []string{"a", "b"}, Rivals: []*quotadv1.StoreRival{{}},
			Refusing: []*quotadv1.StoreRefusal{{Kind: "OOM"}}},
		Documents: &quotadv1.DocumentsStatus{Open: []*quotadv1.OpenDocument{{Document: "3-abc"}, {Document: "4-def"}},
			Regions: []*quotadv1.RegionDocuments{{Region: "us-east", Waited: durationpb.New(time.Second)}, {Region: "ap-south"}}}}
	want := &quotadv1.NodeOverview{Region: "eu-west", Node: "n1", NotReady: new("no store"), Mates: 2,
		Documents: []string{"3-abc", "4-def"}, Waiting: []string{"us-east"}, Recovering: 4,
		LocalUnbooked: 5, Journal: "whole",
		Store: &quotadv1.NodeStore{OutOfReach: 2, Rivals: 1, Refusing: []string{"OOM"}}}
	if o := Overview(&quotadv1.NodeView{Status: s}); !proto.Equal(o, want) {
		t.Errorf("%v, want %v", o, want)
	}
	s.Journal.Failed = true
	if o := Overview(&quotadv1.NodeView{Status: s}); o.GetJournal() != "failed" {
		t.Errorf("%v", o)
	}
}
