package api

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/admit"
)

// TestColumnsAsked: the node is asked what CheckBatch would have asked it, row by row.
func TestColumnsAsked(t *testing.T) {
	node := &fakeNode{}
	handler := &service{server: newServer(t, node, quiet()), node: node}
	for _, m := range []*quotadv1.CheckColumnsRequest{
		{Domain: "api", Names: []string{"plan", "account"},
			Values: []string{"free", "1", "pro", "2"}, Costs: []int64{7, 1 << 51}},
		{Domain: "api", Names: []string{"account"}, Values: []string{"3", "3", ""}},
		{Domain: "other", Costs: []int64{5}},
	} {
		if _, err := handler.CheckColumns(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	account := func(v string) map[string]string { return map[string]string{"account": v} }
	want := []admit.Request{
		{Domain: "api", Descriptors: map[string]string{"plan": "free", "account": "1"}, Cost: 7},
		{Domain: "api", Descriptors: map[string]string{"plan": "pro", "account": "2"},
			Cost: 1 << 51},
		{Domain: "api", Descriptors: account("3"), Cost: 1},
		{Domain: "api", Descriptors: account("3"), Cost: 1},
		{Domain: "api", Descriptors: account(""), Cost: 1},
		{Domain: "other", Cost: 5},
	}
	if len(node.checked) != len(want) {
		t.Fatalf("the node was asked %d times, want %d", len(node.checked), len(want))
	}
	for _, q := range want { // the rows of one call come to the fake node in any order
		found := false
		for _, got := range node.checked {
			found = found || same(got, q)
		}
		if !found {
			t.Errorf("the node was not asked %+v", q)
		}
	}
}

// TestColumnsRefused: what is wrong with all rows refuses the call, and no row reaches the node.
func TestColumnsRefused(t *testing.T) {
	node := &fakeNode{}
	client := quota(t, node)
	many := func(n int) []string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprint(i)
		}
		return all
	}
	one := []string{"account"}
	for _, c := range []struct {
		name, field string
		m           *quotadv1.CheckColumnsRequest
	}{
		{"nothing", "values", &quotadv1.CheckColumnsRequest{Domain: "api"}},
		{"no rows", "values", &quotadv1.CheckColumnsRequest{Domain: "api", Names: one}},
		{"too many rows", "values", &quotadv1.CheckColumnsRequest{Domain: "api", Names: one,
			Values: many(maxInBatch + 1)}},
		{"too many rows without names", "values", &quotadv1.CheckColumnsRequest{Domain: "api",
			Costs: make([]int64, maxInBatch+1)}},
		{"half a row", "values", &quotadv1.CheckColumnsRequest{Domain: "api", Names: many(2),
			Values: many(3)}},
		{"values without names", "names", &quotadv1.CheckColumnsRequest{Domain: "api",
			Values: many(3)}},
		{"too few costs", "costs", &quotadv1.CheckColumnsRequest{Domain: "api", Names: one,
			Values: many(3), Costs: []int64{1, 1}}},
		{"too many costs", "costs", &quotadv1.CheckColumnsRequest{Domain: "api", Names: one,
			Values: many(1), Costs: []int64{1, 1}}},
		{"a name twice", "names", &quotadv1.CheckColumnsRequest{Domain: "api",
			Names: []string{"a", "a"}, Values: many(2)}},
		{"no name", "descriptors", &quotadv1.CheckColumnsRequest{Domain: "api",
			Names: []string{""}, Values: many(1)}},
		{"too many names", "names", &quotadv1.CheckColumnsRequest{Domain: "api",
			Names: many(admit.MaxDescriptors + 1), Values: many(admit.MaxDescriptors + 1)}},
		{"no domain", "domain", &quotadv1.CheckColumnsRequest{Names: one, Values: many(1)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := client.CheckColumns(t.Context(), c.m)
			wantViolations(t, err, c.field)
		})
	}
	if checked, _ := node.asked(); checked != 0 {
		t.Errorf("%d rows of refused calls reached the node", checked)
	}
}

// TestColumnsOfWrongRows: a wrong row is answered alone, and says what is wrong.
func TestColumnsOfWrongRows(t *testing.T) {
	client := quota(t, &fakeNode{decision: allowed()})
	got, err := client.CheckColumns(t.Context(), &quotadv1.CheckColumnsRequest{Domain: "api",
		Names:  []string{"account", "\n"},
		Values: []string{"1", "", strings.Repeat("x", 257), "", "3", "", "4", strings.Repeat("x", 257)},
		Costs:  []int64{1, 1, 0, 1}})
	if err != nil {
		t.Fatal(err)
	}
	const within, wrong = quotadv1.Reason_REASON_WITHIN_LIMIT, quotadv1.Reason_REASON_INVALID_REQUEST
	equal(t, got, &quotadv1.CheckColumnsResponse{Allowed: []bool{true, false, false, false},
		Reasons:   []quotadv1.Reason{within, wrong, wrong, wrong},
		DecidedBy: []uint32{1, 0, 0, 0}, Remaining: []int64{57, 0, 0, 0},
		AtUs: []int64{1763683189999750, 0, 0, 0},
		Limits: []*quotadv1.DecidingLimit{{Limit: "account-minute", Algorithm: "fixed_window",
			LimitUnits: 1000, Entitlement: 400, Window: durationpb.New(time.Minute)}},
		Problems: []*quotadv1.RowProblem{
			{Row: 1, Problem: "descriptors.account: is longer than 256 bytes; send a hash of it"},
			{Row: 2, Problem: rangeWords},
			{Row: 3,
				Problem: `descriptors["\n"]: is longer than 256 bytes; send a hash of it`}},
		Node: "n1", Region: "us-east"})
}

// TestColumnsError: if the call cannot be answered, it fails as a batch does.
func TestColumnsError(t *testing.T) {
	client := quota(t, &fakeNode{err: context.DeadlineExceeded})
	if _, err := client.CheckColumns(t.Context(), &quotadv1.CheckColumnsRequest{Domain: "api",
		Costs: []int64{1, 2}}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

// spread returns the decisions that an answer in columns stands for. Parts that columns leave out
// are left as they are in like.
func spread(t *rapid.T, m *quotadv1.CheckColumnsResponse,
	like []*quotadv1.Decision) (all []*quotadv1.Decision) {
	at := func(column []int64, row int, one bool) int64 {
		switch {
		case one && len(column) == 1:
			return column[0]
		case len(column) == 0:
			return 0
		}
		return column[row]
	}
	micros := func(us int64) *durationpb.Duration {
		if us == 0 {
			return nil
		}
		return durationpb.New(time.Duration(us) * time.Microsecond)
	}
	for i := range m.Allowed {
		d := proto.CloneOf(like[i])
		d.Allowed, d.Reason, d.Remaining = m.Allowed[i], m.Reasons[i], m.Remaining[i]
		d.AtUs = at(m.AtUs, i, true)
		d.RetryAfter, d.Delay = micros(at(m.RetryAfterUs, i, false)), micros(at(m.DelayUs, i, false))
		d.Limit, d.Algorithm, d.LimitUnits, d.Entitlement, d.Degraded = "", "", 0, 0, false
		if place := m.DecidedBy[i]; place > 0 {
			l := m.Limits[place-1]
			d.Limit, d.Algorithm, d.LimitUnits = l.Limit, l.Algorithm, l.LimitUnits
			d.Entitlement, d.Degraded = l.Entitlement, l.Degraded
		}
		d.Problem = ""
		for _, p := range m.Problems {
			if p.Row == uint32(i) {
				d.Problem = p.Problem
			}
		}
		all = append(all, d)
	}
	if len(all) != len(like) {
		t.Fatalf("%d rows for %d decisions", len(all), len(like))
	}
	return all
}

// TestColumnsSayWhatDecisionsSay: whatever was decided, columns say the same as the decisions of a
// batch.
func TestColumnsSayWhatDecisionsSay(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		one := rapid.Custom(func(t *rapid.T) admit.Decision {
			d := admit.Decision{Node: "n1", Region: "us-east",
				Allowed: rapid.Bool().Draw(t, "allowed"),
				Reason: rapid.SampledFrom([]admit.Reason{admit.WithinLimit, admit.NoLimit,
					admit.OverLimit, admit.QueueFull}).Draw(t, "reason"),
				Remaining: quantity.Units(rapid.Int64Range(0, 1<<51).Draw(t, "remaining")),
				RetryAfter: time.Duration(rapid.Int64Range(-1, 9).Draw(t, "retry")) *
					time.Microsecond,
				Delay: time.Duration(rapid.Int64Range(0, 2).Draw(t, "delay")) * time.Microsecond,
				At:    quantity.StoreTime(rapid.Int64Range(0, 3).Draw(t, "at")),
				Limit: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "limit")}
			if d.Limit != "" {
				d.Algorithm = rapid.SampledFrom(algorithms.Kinds).Draw(t, "algorithm")
				d.LimitUnits, d.Window = 10, time.Minute
				d.Entitlement = quantity.Units(rapid.Int64Range(0, 2).Draw(t, "entitlement"))
				d.Degraded = rapid.Bool().Draw(t, "degraded")
			}
			if rapid.Bool().Draw(t, "wrong") {
				d = admit.Decision{Reason: admit.InvalidRequest, Node: "n1", Region: "us-east",
					Problem: &admit.FieldError{Field: "cost", Problem: "is wrong"}}
			}
			return d
		})
		decided := rapid.SliceOfN(one, 1, 30).Draw(t, "decided")
		var want []*quotadv1.Decision
		for _, d := range decided {
			want = append(want, decisionMessage(d))
		}
		m := columnsMessage(decided)
		for i, got := range spread(t, m, want) {
			if !proto.Equal(got, want[i]) {
				t.Fatalf("row %d says %v, want %v", i, got, want[i])
			}
		}
		seen := map[string]bool{}
		for _, l := range m.Limits {
			if text := l.String(); seen[text] {
				t.Fatalf("%s stands in the table twice", text)
			} else {
				seen[text] = true
			}
			if l.Window.AsDuration() != time.Minute {
				t.Fatalf("the window is %v", l.Window)
			}
		}
	})
}
