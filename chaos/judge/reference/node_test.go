//go:build !race

package reference

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/envoyimport"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/memory/journal"
)

// TestEnvoyIsAnsweredAsByTheReference draws configurations of envoyproxy/ratelimit and requests,
// and compares the answers of a node that imported the configuration with those of the model of
// this package: codes, limits, what is left, and when it is reset.
//
// The node is meant to differ in what differ says, and in nothing else:
//   - A denied descriptor is not charged, so that what is used stays within the limit. The model
//     has this habit (Apart), and the other of charging all descriptors or none (Together).
//   - A limit without a name is told by the name that the import gave it.
//   - Times are exact. The reference has whole seconds, so those of the node are rounded up.
//   - A denial that the node remembers is told without asking about the request's other limits, of
//     which nothing is told then.
//   - Of a bucket of which nothing is used there is nothing to reset: 0, not the window's end.
func TestEnvoyIsAnsweredAsByTheReference(t *testing.T) {
	suite.OneGoroutine(t)
	const requests = 500
	for seed := range suite.Short[uint64](8, 16) {
		habit := []Habit{Apart, Together}[seed%2]
		random := rand.New(rand.NewPCG(seed, 7))
		source := Source{Dice: random}
		roots := source.Files()
		texts, err := Texts(roots)
		if err != nil {
			t.Fatal(err)
		}
		c, err := Parse(texts...)
		if err != nil {
			t.Fatal(err)
		}
		d := importedBy(t, texts, habit)
		t.Run(fmt.Sprintf("%d, %s", seed, habit), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				ask := startTwin(t, d).ShouldRateLimit
				model := NewServer(c, habit)
				for range requests {
					time.Sleep(pause(random, time.Now()))
					m := source.Request(roots)
					want, err := model.ShouldRateLimit(time.Now(), m)
					if err != nil {
						t.Fatal(err)
					}
					got, err := ask(t.Context(), m)
					if err != nil {
						t.Fatalf("%v: %v", m, err)
					}
					if problem := differ(got, want); problem != "" {
						t.Fatalf("%s\n%v\ngot  %v\nwant %v\n%s\n%s", problem, m, got, want, texts, d.Source())
					}
				}
			})
		})
	}
}

// pause draws the time until the next request. The node works all the time, so that long pauses
// take long: they last until the next minute or hour begins, and with it another window.
func pause(random *rand.Rand, now time.Time) time.Duration {
	until := func(unit time.Duration) time.Duration { return now.Truncate(unit).Add(unit).Sub(now) }
	if random.IntN(300) == 0 {
		return until(time.Hour)
	}
	return []time.Duration{0, 0, 0, 0, 0, time.Second, time.Second, 300 * time.Millisecond,
		20 * time.Second, until(time.Minute)}[random.IntN(10)]
}

// differ says in what an answer differs from that of the model.
func differ(got, want *rlsv3.RateLimitResponse) string {
	if got.OverallCode != want.OverallCode || len(got.Statuses) != len(want.Statuses) {
		return "codes differ"
	}
	for i, w := range want.Statuses {
		g := got.Statuses[i]
		if g.CurrentLimit == nil && got.OverallCode == rlsv3.RateLimitResponse_OVER_LIMIT {
			continue // denied from memory
		}
		limit, wanted := g.GetCurrentLimit(), w.GetCurrentLimit()
		unnamed := wanted.GetName() == ""
		reset, until := g.GetDurationUntilReset().AsDuration(), w.GetDurationUntilReset().AsDuration()
		if whole := (reset + time.Second - 1).Truncate(time.Second); whole != 0 {
			reset = whole
		} else if g.LimitRemaining == limit.GetRequestsPerUnit() || g.LimitRemaining == 0 {
			reset = until // nothing is used, though a cost above the limit has no room
		}
		switch {
		case g.Code != w.Code:
			return fmt.Sprintf("code %d differs", i)
		case limit.GetRequestsPerUnit() != wanted.GetRequestsPerUnit() || limit.GetUnit() != wanted.GetUnit() ||
			limit.GetName() != wanted.GetName() && !unnamed || (limit == nil) != (wanted == nil):
			return fmt.Sprintf("limit %d differs", i)
		case g.LimitRemaining != w.LimitRemaining:
			return fmt.Sprintf("what is left of %d differs", i)
		case reset != until:
			return fmt.Sprintf("the reset of %d differs: %v, want %v", i, reset, until)
		}
	}
	return ""
}

// importedBy imports a configuration for one region.
func importedBy(t *testing.T, texts [][]byte, habit Habit) *policy.Document {
	t.Helper()
	files := make([]envoyimport.File, len(texts))
	for i, text := range texts {
		files[i] = envoyimport.File{Name: fmt.Sprintf("%d.yaml", i), Text: text}
	}
	made, err := envoyimport.Convert(files, envoyimport.Options{Version: 1,
		Regions:     []policy.Region{{Name: "here", Weight: 1}},
		Descriptors: policy.Together(habit)})
	if err != nil {
		t.Fatalf("%v\n%s", err, texts)
	}
	d, err := policy.Parse("limits.yaml", made.Document)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// startTwin runs a node in a bubble on a twin of a Redis, and returns its service for Envoy.
func startTwin(t *testing.T, d *policy.Document) rlsv3.RateLimitServiceClient {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	twin := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }, "here")
	s, _ := twin.ConnectWithin(time.Second, time.Now)
	n := network.New()
	host := n.Host("here")
	c := region.Config{Region: "here", Node: "n1", Nodes: 1, Policy: d, Bootstrap: true,
		Exchange: exchange.Options{}, Log: quiet, Store: s, Dial: host.DialContext,
		PeerAdvertise: netip.AddrPortFrom(host.IP(), 8082).String(),
		Advertise:     netip.AddrPortFrom(host.IP(), 7946)}
	var errs [6]error
	var served net.Listener
	var conn *grpc.ClientConn
	c.Journal, errs[0] = journal.Open(filepath.Join(fixtures.Folder(t), "journal"),
		journal.Options{Region: "here", Node: "n1"})
	c.PeerListener, errs[1] = host.Listen(8082)
	c.Packets, errs[2] = host.ListenPacket(7946)
	c.Streams, errs[3] = host.Listen(7946)
	served, errs[4] = host.Listen(8081)
	conn, errs[5] = grpc.NewClient("passthrough:///here:8081",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return host.DialContext(ctx, "tcp", address)
		}))
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	node, err := region.Start(context.WithoutCancel(t.Context()), c)
	if err != nil {
		t.Fatal(err)
	}
	server := api.New(node, quiet, api.Options{})
	serving := make(chan error, 1)
	go func() { serving <- server.Callers.ServeGRPC(served) }()
	t.Cleanup(func() {
		if err := errors.Join(conn.Close(), server.Close(), <-serving, node.Close(), n.Close()); err != nil {
			t.Error(err)
		}
	})
	return rlsv3.NewRateLimitServiceClient(conn)
}
