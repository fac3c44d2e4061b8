package region

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hereAndThere is two regions, of which "here" has 40 % of everything.
var hereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}

// threeRegions is three regions, of which two have 40 % each.
var threeRegions = []string{"us: {weight: 40}", "eu: {weight: 40}", "ap: {weight: 20}"}

// unstarted returns a node of region "here" in which nothing runs, and whose store is still to be
// opened.
func unstarted(t testing.TB, nodes int, d *policy.Document) *Node {
	t.Helper()
	way, _ := lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(time.Now().UnixMicro())
	}, "here").ConnectWithin(storeTimeout, time.Now)
	kept, _, err := journals.New("here", "n1")
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(Config{Region: "here", Node: "n1", Nodes: nodes, Policy: d, Store: way,
		Journal: kept,
		Log:     slog.New(slog.DiscardHandler)}, Stepping{})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// asked is what limits are matched by.
func asked(q admit.Request) (domain string, descriptors map[string]string) {
	return q.Domain, q.Descriptors
}

// request is one unit of an account's in domain api.
func request(account string) admit.Request {
	return admit.Request{Domain: "api", Descriptors: map[string]string{"account": account}, Cost: 1}
}
