package region

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// HereAndThere is two regions, of which "here" has 40 % of everything.
var HereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}

// Unstarted returns a node of region "here" in which nothing runs, and whose store is still to be
// opened.
func Unstarted(t testing.TB, nodes int, d *policy.Document) *Node {
	t.Helper()
	way, _ := lab.NewTwin(func() quantity.StoreTime {
		return quantity.StoreTime(time.Now().UnixMicro())
	}, "here").ConnectWithin(time.Second, time.Now)
	kept, _, err := journals.New("here", "n1")
	suite.Must(t, err)
	n, err := New(Config{Region: "here", Node: "n1", Nodes: nodes, Policy: d, Store: way,
		Journal: kept,
		Log:     slog.New(slog.DiscardHandler)}, Stepping{})
	suite.Must(t, err)
	return n
}
