package callers

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// ordered are costs on a limit of 5, and whether each is admitted if they are decided in this
// order. In any other order of unlike costs, others are admitted. 0 is a wrong request.
var ordered = []struct {
	cost   int64
	admits bool
}{{3, true}, {4, false}, {0, false}, {1, true}, {2, false}, {1, true}, {1, false}}

// filled is the number of requests of other accounts between two of the account in question, so
// that all of them are maxInBatch at most.
const filled = 160

// orderedRows returns the accounts and costs of a call.
func orderedRows(account string) (accounts []string, costs []int64) {
	for _, one := range ordered {
		accounts, costs = append(accounts, account), append(costs, one.cost)
		if len(accounts) >= 6*filled { // the last two follow each other
			continue
		}
		for n := range filled - 1 {
			accounts = append(accounts, fmt.Sprintf("%s-%d-%d", account, len(accounts), n))
			costs = append(costs, 1)
		}
	}
	return accounts, costs
}

// wantOrdered compares what was admitted and why, row by row, with what orderedRows has.
func wantOrdered(t *testing.T, what string, rows int, row func(i int) (allowed bool,
	reason string)) {
	t.Helper()
	number := 0
	_, costs := orderedRows("")
	if rows != len(costs) {
		t.Fatalf("%s: %d decisions for %d requests", what, rows, len(costs))
	}
	for i := range rows {
		allowed, reason := row(i)
		want, why := true, "within_limit"
		if i%filled == 0 || i == rows-1 && number < len(ordered) {
			want = ordered[number].admits
			if !want {
				why = "over_limit"
			}
			number++
		}
		if costs[i] == 0 {
			why = "invalid_request"
		}
		if allowed != want || reason != why {
			t.Errorf("%s: request %d, of cost %d: allowed %v, %s; want %v, %s", what, i, costs[i],
				allowed, reason, want, why)
		}
	}
	if number != len(ordered) {
		t.Fatalf("%s: %d of %d requests on the account were judged", what, number, len(ordered))
	}
}

func reasonOf(r quotadv1.Reason) string {
	return strings.ToLower(strings.TrimPrefix(r.String(), "REASON_"))
}

// TestNodeBatches: a batch of many hundred requests, over gRPC and over HTTP, has those on one
// bucket decided in their order, and a wrong one alone.
func TestNodeBatches(t *testing.T) {
	suite.OneGoroutine(t)
	for name, start := range fixtures.Kinds {
		// Each has a server of its own: the time that the embedded one takes for a command grows
		// with the number of its keys.
		play := func(call string, play func(*testing.T, *Server)) {
			t.Run(name+", "+call, func(t *testing.T) {
				play(t, newServer(t, fronts.Start(t, start(t), fronts.AccountLimit(5, fronts.RoomyWindow())), fronts.Quiet()))
			})
		}
		play("gRPC", func(t *testing.T, s *Server) {
			wantBatchInOrder(t, quotadv1.NewQuotaServiceClient(dialed(t, s)))
		})
		play("HTTP", func(t *testing.T, s *Server) {
			wantBatchHTTPInOrder(t, fronts.Listen(t, s.ServeHTTP, s.Close))
		})
	}
}

func wantBatchInOrder(t *testing.T, client quotadv1.QuotaServiceClient) {
	t.Helper()
	m := &quotadv1.CheckBatchRequest{}
	accounts, costs := orderedRows("grpc")
	for i := range accounts {
		m.Requests = append(m.Requests, &quotadv1.CheckRequest{Domain: "api",
			Descriptors: map[string]string{"account": accounts[i]}, Cost: proto.Int64(costs[i])})
	}
	got, err := client.CheckBatch(t.Context(), m)
	suite.Must(t, err)
	wantOrdered(t, "CheckBatch", len(got.Decisions), func(i int) (bool, string) {
		d := got.Decisions[i]
		if (d.Problem != "") != (costs[i] == 0) {
			t.Errorf("request %d has the problem %q", i, d.Problem)
		}
		return d.Allowed, reasonOf(d.Reason)
	})
}

func wantBatchHTTPInOrder(t *testing.T, at string) {
	t.Helper()
	var body strings.Builder
	accounts, costs := orderedRows("http")
	for i := range accounts {
		fmt.Fprintf(&body, `,{"domain":"api","descriptors":{"account":%q},"cost":%d}`, accounts[i],
			costs[i])
	}
	code, _, got := fronts.Call(t, "POST", at+"/v1/check-batch",
		`{"requests":[`+body.String()[1:]+`]}`)
	all, _ := got["decisions"].([]any)
	if code != 200 {
		t.Fatalf("answered %d %v", code, got)
	}
	wantOrdered(t, "HTTP", len(all), func(i int) (bool, string) {
		d, _ := all[i].(map[string]any)
		allowed, _ := d["allowed"].(bool)
		return allowed, fmt.Sprint(d["reason"])
	})
}
