//go:build !race

package reference

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"regexp"
	"testing"
	"time"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/envoyimport"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/api"
)

// TestEnvoyIsAnsweredAsByTheReference draws configurations of envoyproxy/ratelimit and requests,
// and compares the answers of a node that imported the configuration with those of the model of
// this package: codes, limits, what is left, and when it is reset.
//
// The node is meant to differ in what differ says, and in nothing else:
//   - A denied descriptor is not charged, so that what is used stays within the limit. The model
//     has this habit (Apart), and the others of charging all descriptors or none (Together), and of
//     charging whatever is left (Always).
//   - A cost of 0 asks: where nothing is left it is denied, as the model's habits do.
//   - A denial that the node remembers is told without asking about the request's other limits, of
//     which nothing is told then.
//   - Configurations that the import refuses are drawn anew (see refusal).
func TestEnvoyIsAnsweredAsByTheReference(t *testing.T) {
	suite.OneGoroutine(t)
	const requests = 500
	for seed := range suite.Short[uint64](9, 18) {
		habit := []Habit{Apart, Together, Always}[seed%3]
		random := rand.New(rand.NewPCG(seed, 7))
		source := Source{Dice: random, Zeros: true, Negative: true, None: true, Inner: true, Nested: true}
		var roots []Root
		var texts [][]byte
		var d *policy.Document
		for d == nil {
			var err error
			roots = source.Files()
			texts, err = Texts(roots)
			suite.Must(t, err)
			d, err = importedBy(texts, habit)
			if err != nil && !refusal.MatchString(err.Error()) {
				t.Fatalf("%v\n%s", err, texts)
			}
		}
		configuration, err := Parse(texts...)
		suite.Must(t, err)
		t.Run(fmt.Sprintf("%d, %s", seed, habit), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				server := startTwin(t, d)
				fronts.Serve(t, map[int]func(net.Listener) error{fronts.RPCPort: server.Callers.ServeGRPC}, server.Close, func(c *fronts.Client) {
					ask := rlsv3.NewRateLimitServiceClient(c.RPC).ShouldRateLimit
					model := NewServer(configuration, habit)
					for range requests {
						time.Sleep(pause(random, time.Now()))
						m := source.Request(roots)
						want, err := model.ShouldRateLimit(time.Now(), m)
						suite.Must(t, err)
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
		})
	}
}

// refusal is why the import refuses configurations that Source draws: a limit in both modes, and a
// limit of 0 for values with a * before another limit for the same values.
var refusal = regexp.MustCompile("both shadow_mode and quota_mode|has no limit and fits the same values")

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
	fromMemory := false
	for i, w := range want.Statuses {
		g := got.Statuses[i]
		if g.CurrentLimit == nil && got.OverallCode == rlsv3.RateLimitResponse_OVER_LIMIT {
			fromMemory = true
			continue
		}
		limit, wanted := g.GetCurrentLimit(), w.GetCurrentLimit()
		reset, until := g.GetDurationUntilReset().AsDuration(), w.GetDurationUntilReset().AsDuration()
		switch {
		case g.Code != w.Code:
			return fmt.Sprintf("code %d differs", i)
		case limit.GetRequestsPerUnit() != wanted.GetRequestsPerUnit() || limit.GetUnit() != wanted.GetUnit() ||
			limit.GetName() != wanted.GetName() || (limit == nil) != (wanted == nil):
			return fmt.Sprintf("limit %d differs", i)
		case g.LimitRemaining != w.LimitRemaining:
			return fmt.Sprintf("what is left of %d differs", i)
		case reset != until:
			return fmt.Sprintf("the reset of %d differs: %v, want %v", i, reset, until)
		}
	}
	if !fromMemory && !proto.Equal(got.DynamicMetadata, want.DynamicMetadata) {
		return "the dynamic metadata differs"
	}
	return ""
}

// importedBy imports a configuration for one region, for a node that is to have a habit.
func importedBy(texts [][]byte, habit Habit) (*policy.Document, error) {
	switch habit {
	case Together:
		return importedWith(texts, policy.DecideTogether, nil)
	case Always:
		d, err := importedWith(texts, policy.DecideApart, nil)
		if err != nil {
			return nil, err
		}
		var all []string
		for _, l := range d.Limits {
			all = append(all, l.Name)
		}
		return importedWith(texts, policy.DecideApart, all)
	}
	return importedWith(texts, policy.DecideApart, nil)
}

func importedWith(texts [][]byte, together policy.Together, always []string) (*policy.Document, error) {
	files := make([]envoyimport.File, len(texts))
	for i, text := range texts {
		files[i] = envoyimport.File{Name: fmt.Sprintf("%d.yaml", i), Text: text}
	}
	made, err := envoyimport.Convert(files, envoyimport.Options{Version: 1,
		Regions:     []policy.Region{{Name: "here", Weight: 1}},
		Descriptors: together, ChargeAlways: always})
	if err != nil {
		return nil, err
	}
	return policy.Parse("limits.yaml", made.Document)
}

// startTwin runs a node in a bubble on a twin of a Redis, and returns what serves it.
func startTwin(t *testing.T, d *policy.Document) *api.Server {
	t.Helper()
	twin := lab.NewTwin(func() quantity.StoreTime { return quantity.StoreTime(time.Now().UnixMicro()) }, "here")
	s, _ := twin.ConnectWithin(time.Second, time.Now)
	alone := cluster.New(fixtures.Folder(t), "here")
	c, err := alone.Config("here", s, d)
	suite.Must(t, err)
	node, err := cluster.Start(context.WithoutCancel(t.Context()), c)
	suite.Must(t, err)
	t.Cleanup(func() { suite.Must(t, node.Close(), alone.Network.Close()) })
	return api.New(node, alone.Log, api.Options{})
}
