package store

import (
	"context"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// A pool whose server is gone tries to reach it once a second, and only then sees that it was
// closed.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// server is one of the two kinds of Redis that everything here is tested on.
type server struct {
	start func(t *testing.T) *servers.Server
	// starts an empty server at an address that has just become free
	startAt   func(t *testing.T, address string) *servers.Server
	protected func(t *testing.T, password string) *servers.Server
}

var kinds = map[string]server{
	"embedded": {
		start: func(t *testing.T) *servers.Server {
			return fixtures.Started(t)(servers.StartEmbedded(t.Context()))
		},
		startAt: func(t *testing.T, address string) *servers.Server {
			return fixtures.Started(t)(servers.StartEmbeddedAt(address, ""))
		},
		protected: func(t *testing.T, password string) *servers.Server {
			return fixtures.Started(t)(servers.StartEmbeddedAt("127.0.0.1:0", password))
		},
	},
	"process": {
		start: func(t *testing.T) *servers.Server { return fixtures.Process(t) },
		startAt: func(t *testing.T, address string) *servers.Server {
			_, service, _ := net.SplitHostPort(address)
			port, err := strconv.Atoi(service)
			suite.Must(t, err)
			return fixtures.Started(t)(servers.StartProcessAt(t.Context(), port))
		},
		protected: func(t *testing.T, password string) *servers.Server {
			s := fixtures.Process(t)
			suite.Must(t, fixtures.Operator(t, s).ConfigSet(t.Context(), "requirepass",
				password).Err())
			return s
		},
	},
}

// onBoth runs a test on each kind of server; without a redis-server on this machine it fails.
func onBoth(t *testing.T, f func(t *testing.T, kind server)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) { f(t, kind) })
	}
}

// address returns where a server listens.
func address(s *servers.Server) string { return strings.TrimPrefix(s.URL, "redis://") }

// patient is a timeout that a loaded machine does not reach.
const patient = 30 * time.Second

func connect(t testing.TB, o Options) *Store {
	t.Helper()
	if o.Timeout == 0 {
		o.Timeout = patient
	}
	s, err := Connect(o)
	suite.Must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// node connects to a server and opens the store there.
func node(t testing.TB, s *servers.Server, o Opening) *Store {
	t.Helper()
	n := connect(t, Options{URL: s.URL, Now: s.Now})
	mustOpen(t, n, o)
	return n
}

// clientOf returns the client of a store that is not divided.
func clientOf(s *Store) *redis.Client { return s.servers.(*redisServers).topology.(single).client }

// epoch is that of the policy which most calls here are made under.
const epoch = "1-a"

var first = Opening{Region: "eu", Epoch: epoch, Bootstrap: true}

func mustOpen(t testing.TB, s *Store, o Opening) Opened {
	t.Helper()
	opened, err := s.Open(context.Background(), o)
	if err != nil {
		t.Fatalf("open %+v: %v", o, err)
	}
	return opened
}

// took reports whether a store was taken as it stood, under a generation.
func (o Opened) took(generation uint64) bool { return o.Generation == generation && !o.Lost }

// long is a window whose cell ends in 2041, so that no test sees the cell change under its hands.
const long = int64(1) << 50

func terms(entitlement quantity.Units) algorithms.Terms {
	return algorithms.Terms{Kind: algorithms.FixedWindow, Window: long, Cell: long, Tick: 1,
		Entitlement: entitlement}
}

func target(id string, entitlement quantity.Units) algorithms.LimitTarget {
	return algorithms.LimitTarget{Target: algorithms.Target{Key: BucketKey(Whole, id),
		Terms: terms(entitlement)}}
}

// under is the guard of a call: the store fills in the rest.
func under(epoch string) algorithms.Fence { return algorithms.Fence{Epoch: epoch} }

// charge is a call that charges costs to one bucket.
func charge(id string, entitlement quantity.Units, costs ...quantity.Units) algorithms.Decide {
	return algorithms.Decide{Fence: under(epoch), Commit: true,
		Buckets: []algorithms.LimitTarget{target(id, entitlement)}, Costs: costs}
}

// decide runs one call, which must reach the store.
func decide(t testing.TB, s *Store, c algorithms.Decide) algorithms.Decided {
	t.Helper()
	return must(t, s.Decide(context.Background(), []algorithms.Decide{c})[0])
}

func must[R any](t testing.TB, r Result[R]) R {
	t.Helper()
	if !Answered(r.Err) {
		t.Fatal(r.Err)
	}
	return r.Value
}

func lend(t testing.TB, s *Store, c algorithms.Lend) algorithms.Given {
	t.Helper()
	return must(t, s.Lend(context.Background(), []algorithms.Lend{c})[0])
}

func credit(t testing.TB, s *Store, c algorithms.Credit) algorithms.Credited {
	t.Helper()
	return must(t, s.Credit(context.Background(), []algorithms.Credit{c})[0])
}

func inspect(t testing.TB, s *Store, id string, of algorithms.Terms) algorithms.Inspected {
	t.Helper()
	r, err := s.Inspect(context.Background(), algorithms.Inspect{Fence: under(epoch),
		Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: of}})
	if !Answered(err) {
		t.Fatal(err)
	}
	return r
}

// admitted counts the requests let through.
func admitted(d algorithms.Decided) (n quantity.Units) {
	for _, a := range d.Answers {
		if a.Admitted {
			n++
		}
	}
	return n
}

// serves fails the test unless the store charges one unit of a bucket nobody else uses.
func serves(t testing.TB, s *Store, id string) {
	t.Helper()
	if d := decide(t, s, charge(id, 10, 1)); d.Status != algorithms.StatusOK || admitted(d) != 1 {
		t.Fatalf("the store does not serve: %+v", d)
	}
}

// allAre fails the test unless every guarded call ends with want.
func allAre(t testing.TB, s *Store, id string, want algorithms.Status) {
	t.Helper()
	allUnder(t, s, epoch, id, want)
}

// allUnder fails the test unless every guarded call under an epoch ends with want.
func allUnder(t testing.TB, s *Store, epoch, id string, want algorithms.Status) {
	t.Helper()
	cell := quantity.Cell(time.Now().UnixMicro() / long)
	c, hold := charge(id, 10, 1), holding(Whole, id+" assigned", "n1", 1, 0)
	c.Fence, hold.Fence = under(epoch), under(epoch)
	read, err := s.Inspect(context.Background(), algorithms.Inspect{Fence: c.Fence,
		Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: terms(10)}})
	if !Answered(err) {
		t.Fatal(err)
	}
	for call, status := range map[string]algorithms.Status{
		"inspect": read.Status,
		"decide":  decide(t, s, c).Status,
		"lend": lend(t, s, algorithms.Lend{Fence: c.Fence,
			Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: terms(10)},
			Debit: algorithms.Debit{Peer: "us",
				Cell: cell, Lent: 1, Cap: 10}}).Status,
		"credit": credit(t, s, algorithms.Credit{Fence: c.Fence,
			Target: algorithms.Target{Key: BucketKey(Whole, id), Terms: terms(10)},
			Announcement: algorithms.Announcement{Peer: "us",
				PeerGeneration: 1, Cell: cell, Lent: 1, Most: 10}}).Status,
		"assign": assign(t, s, hold).Status,
	} {
		if status != want {
			t.Errorf("%s: %v, want %v", call, status, want)
		}
	}
}
