package tenure

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// alone is a world of one region.
var alone = []string{"us: {weight: 1}"}

// of returns a node's tenure of region "us" whose store is not open yet. now is the node's clock.
func of(t *testing.T, node string, d *policy.Document, s *store.Store, j *journal.Journal,
	now func() time.Time) *Tenure {
	t.Helper()
	n, err := New(Config{Region: "us", Node: node, Bootstrap: true, Policy: d, Store: s, Journal: j,
		Now: now,
		Log: slog.New(slog.DiscardHandler), Changed: func(Change) {}})
	suite.Must(t, err)
	return n
}

// decide asks the store to decide a request of one unit for an account, and returns the error.
func (t *Tenure) decide(test *testing.T, account string) (algorithms.Decided, error) {
	r := t.Rules()
	call := algorithms.Decide{Fence: algorithms.Fence{Epoch: r.Epoch}, Commit: true,
		Costs: []quantity.Units{1}}
	for _, a := range r.Match("api", map[string]string{"account": account}) {
		call.Buckets = append(call.Buckets, a.Target)
	}
	found := t.config.Store.Decide(test.Context(), []algorithms.Decide{call})[0]
	if found.Err != nil && store.Answered(found.Err) && store.ClockRefusal(found.Err) == nil {
		test.Fatal(found.Err)
	}
	return found.Value, found.Err
}
