package admit

import (
	"log/slog"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/journals"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
	"github.com/quotad/quotad/region/trade/rights"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	// alone is a world of one region.
	alone = []string{"us: {weight: 1}"}
	// hereAndThere is two regions, of which "here" has 40 % of everything.
	hereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}
)

// now is the clock of a twin.
func now() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }

// unstarted returns a limiter of region "here" in which nothing runs: its store is not open, and it
// answers what needs none.
func unstarted(t testing.TB, nodes int, d *policy.Document) *Limiter {
	t.Helper()
	s, _ := lab.NewTwin(now, "a").ConnectWithin(time.Second, time.Now)
	return on(t, s, nodes, d)
}

// on returns a limiter of region "here" on a store, in which nothing runs.
func on(t testing.TB, s *store.Store, nodes int, d *policy.Document) *Limiter {
	t.Helper()
	return until(t, make(chan struct{}), s, nodes, d)
}

// until is on, of a node that ends when closed is closed.
func until(t testing.TB, closed <-chan struct{}, s *store.Store, nodes int, d *policy.Document) *Limiter {
	t.Helper()
	kept, _, err := journals.New("here", "n1")
	suite.Must(t, err)
	c := Config{Region: "here", Node: "n1", Nodes: nodes, Store: s, Journal: kept,
		Now: time.Now, Log: slog.New(slog.DiscardHandler), Closed: closed}
	l, err := wired(c, d, peer.NewClient(nil, nil)) // it hears of no peer's address
	suite.Must(t, err)
	return l
}

// wired returns a limiter with a tenure and an engine beside it, as a node has them.
func wired(c Config, d *policy.Document, peers *peer.Client) (l *Limiter, err error) {
	changed := func(to tenure.Change) {
		l.Changed(to)
		l.rights.Changed(to)
	}
	c.Tenure, err = tenure.New(tenure.Config{Region: c.Region, Node: c.Node, Bootstrap: true,
		Policy: d, Store: c.Store, Journal: c.Journal, Now: c.Now, Log: c.Log, Changed: changed,
		Closed: c.Closed})
	if err != nil {
		return nil, err
	}
	options := exchange.Options{Nodes: c.Nodes}
	c.Rights = rights.New(rights.Config{Region: c.Region, Node: c.Node, Options: options,
		Store: c.Store, Journal: c.Journal, Tenure: c.Tenure, Peers: peers,
		Alive: func(string, uint64) bool { return false }, Elapsed: func() time.Duration { return 0 },
		Broadcast: func(string, []byte) error { return nil },
		Now:       c.Now, Log: c.Log, Closed: c.Closed})
	return New(c), nil
}

// asked is what limits are matched by.
func asked(q Request) (domain string, descriptors map[string]string) {
	return q.Domain, q.Descriptors
}

// request is one unit of an account's in domain api.
func request(account string) Request {
	return Request{Domain: "api", Cost: 1, Descriptors: map[string]string{"account": account}}
}
