package store

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestScriptFlush: a server that forgets its scripts is given them again; no charge is lost or made
// twice.
func TestScriptFlush(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		for i := range quantity.Units(4) {
			r := s.Decide(t.Context(), []algorithms.Decide{charge("k", 100, 1),
				charge("k", 100, 1, 1)})
			if used := must(t, r[0]).Buckets[0].Used; used != 3*i+1 {
				t.Errorf("round %d: used %d, want %d", i, used, 3*i+1)
			}
			must(t, r[1])
			client.ScriptFlush(t.Context())
			allAre(t, s, "other", algorithms.StatusOK)
			client.ScriptFlush(t.Context())
		}
		if used := inspect(t, s, "k", terms(100)).Used; used != 12 {
			t.Errorf("used %d, want 12", used)
		}
	})
}

// intruder inserts a command of another client into the middle of the next pipeline.
type intruder struct {
	command redis.Cmder
	at      int
	done    bool
}

func (i *intruder) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (i *intruder) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (i *intruder) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		if i.done {
			return next(ctx, cmds)
		}
		i.done = true
		all := append(append(append([]redis.Cmder{}, cmds[:i.at]...), i.command), cmds[i.at:]...)
		return next(ctx, all)
	}
}

// TestScriptsChangeInsideAPipeline: of a pipeline that ran in part, only the calls that did not run
// are sent again.
func TestScriptsChangeInsideAPipeline(t *testing.T) {
	ctx := context.Background()
	cases := map[string]struct {
		known   bool // the server knows the script when the pipeline arrives
		command redis.Cmder
		used    []quantity.Units // after each call
	}{
		"forgotten": {true, redis.NewStatusCmd(ctx, "script", "flush"),
			[]quantity.Units{1, 2, 3, 4, 5, 6}},
		"loaded by a mate": {false, redis.NewStringCmd(ctx, "script", "load",
			algorithms.DecideScript.Source), []quantity.Units{4, 5, 6, 1, 2, 3}},
		"another one loaded": {false, redis.NewStringCmd(ctx, "script", "load",
			algorithms.LendScript.Source), []quantity.Units{1, 2, 3, 4, 5, 6}},
	}
	onBoth(t, func(t *testing.T, kind server) {
		for name, c := range cases {
			t.Run(name, func(t *testing.T) {
				server := kind.start(t)
				s := node(t, server, first)
				if c.known {
					serves(t, s, "other")
				}
				clientOf(s).AddHook(&intruder{command: c.command, at: 3})
				calls := make([]algorithms.Decide, 6)
				for i := range calls {
					calls[i] = charge("k", 6, 1)
					// Another fence than its neighbours' makes it a script call of its own.
					calls[i].Generation = uint64(i%2) * s.Generation()
				}
				for i, r := range s.Decide(ctx, calls) {
					d := must(t, r)
					if d.Status != algorithms.StatusOK || admitted(d) != 1 ||
						d.Buckets[0].Used != c.used[i] {
						t.Errorf("call %d: %+v, want used %d", i, d, c.used[i])
					}
				}
				if d := decide(t, s, charge("k", 6, 1)); admitted(d) != 0 ||
					d.Buckets[0].Used != 6 {
					t.Errorf("after six units of six: %+v", d)
				}
			})
		}
	})
}

// TestScriptFlushUnderLoad: whenever scripts are forgotten, exactly what was admitted is charged.
// If a script is forgotten a second time, between loading and sending, the call's error says so and
// the call has not run.
func TestScriptFlushUnderLoad(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		var got atomic.Int64
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				for range 50 {
					r := s.Decide(context.Background(), []algorithms.Decide{charge("k", 1000, 1),
						charge("k", 1000, 1)})
					for _, r := range r {
						if r.Err != nil && !strings.Contains(r.Err.Error(), "NOSCRIPT") {
							t.Error(r.Err)
						}
						got.Add(int64(admitted(r.Value)))
					}
				}
			})
		}
		for range 100 {
			suite.Must(t, client.ScriptFlush(t.Context()).Err())
		}
		all.Wait()
		if used := inspect(t, s, "k", terms(1000)).Used; used != quantity.Units(got.Load()) ||
			used == 0 {
			t.Errorf("%d admitted, %d charged", got.Load(), used)
		}
	})
}

// TestFlushAll: a store that lost its data, its scripts kept, admits and writes nothing until it is
// opened again.
func TestFlushAll(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, mate, client := node(t, server, first), node(t, server, first), fixtures.Operator(t,
			server)
		allAre(t, s, "k", algorithms.StatusOK)
		suite.Must(t, client.FlushAll(t.Context()).Err())
		if kept := client.ScriptExists(t.Context(),
			algorithms.DecideScript.SHA).Val(); len(kept) != 1 || !kept[0] {
			t.Fatalf("the script was not kept: this test proves nothing")
		}
		allAre(t, s, "k", algorithms.StatusUnknown)
		if n := client.DBSize(t.Context()).Val(); n != 0 {
			t.Errorf("%d keys were written to a store that is not open", n)
		}
		reopened(t, s, mate)
	})
}

// TestLossIsNotBackdated: after a loss the store's time goes on from the latest it has shown this
// node. So a clock set back, or that of another machine, reopens no cell.
func TestLossIsNotBackdated(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, client := node(t, server, first), fixtures.Operator(t, server)
		shown := decide(t, s, charge("k", 10, 1)).Now + 600_000_000
		// as by a clock ten minutes ahead
		suite.Must(t, client.HSet(t.Context(), TokenKey(Whole), "mark", int64(shown)).Err())
		if d := decide(t, s, charge("k", 10, 1)); d.Now != shown+1 {
			t.Fatalf("%+v, want the time %d", d, shown+1)
		}
		client.FlushAll(t.Context())
		mustOpen(t, s, Opening{Region: "eu", Epoch: epoch, LastGeneration: s.Generation()})
		if d := decide(t, s, charge("k", 10, 1)); d.Now != shown+2 || admitted(d) != 0 {
			t.Errorf("after the loss %+v, want a denial at %d", d, shown+2)
		}
	})
}

// TestTokenDeleted: without its token a store is unknown, even though its buckets are all there.
func TestTokenDeleted(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s, mate, client := node(t, server, first), node(t, server, first), fixtures.Operator(t,
			server)
		serves(t, s, "k")
		before := client.HGetAll(t.Context(), BucketKey(Whole, "k")).Val()
		if n := client.Del(t.Context(), TokenKey(Whole)).Val(); n != 1 {
			t.Fatalf("%d keys deleted", n)
		}
		allAre(t, s, "k", algorithms.StatusUnknown)
		after := client.HGetAll(t.Context(), BucketKey(Whole, "k")).Val()
		if n := client.DBSize(t.Context()).Val(); n != 1 || len(before) == 0 ||
			len(before) != len(after) || before["u"] != after["u"] {
			t.Errorf("%d keys, the bucket %v became %v", n, before, after)
		}
		reopened(t, s, mate)
	})
}

// reopened checks that after a loss the first node begins another generation with closed cells, and
// that another node of the region follows it.
func reopened(t *testing.T, s, mate *Store) {
	t.Helper()
	known := s.Generation()
	o := Opening{Region: "eu", Epoch: epoch, LastGeneration: known}
	got := mustOpen(t, s, o)
	if !got.Lost || got.Generation <= known {
		t.Errorf("opened %+v, want a loss and a generation above %d", got, known)
	}
	allAre(t, mate, "k", algorithms.StatusUnknown)
	if mates, want := mustOpen(t, mate, o), got.Generation; !mates.took(want) {
		t.Errorf("the mate opened %+v, want %+v", mates, want)
	}
	closedCells(t, s, epoch)
	closedCells(t, mate, epoch)
}

// TestBeatOfOtherData: a server whose data may be others than those that the store was opened on
// gives this node no beat, although the token is the same. So no node says of a store that it has
// just answered if it must be opened anew first.
func TestBeatOfOtherData(t *testing.T) {
	server := fixtures.Process(t)
	s, mate, admin := node(t, server, first), node(t, server, as("n2", 0, nil)), fixtures.Operator(t, server)
	suite.Must(t, s.Beat(t.Context(), first.Epoch), mate.Beat(t.Context(), first.Epoch))
	suite.Must(t, admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(),
		admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
	if err := s.Beat(t.Context(), first.Epoch); !errors.Is(err, ErrUnknownStore) {
		t.Errorf("with another master_replid: %v, want %v", err, ErrUnknownStore)
	}
	reopened(t, s, mate)
	suite.Must(t, s.Beat(t.Context(), first.Epoch))
}

// TestAnOlderCopyIsClosedToAll: once one node has found that a store is an older copy of itself, no
// other node decides on it, also where that one has started anew and may begin no generation yet.
func TestAnOlderCopyIsClosedToAll(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		for name, finds := range map[string]func(t *testing.T, server *servers.Server, n1 *Store){
			"a call": func(t *testing.T, _ *servers.Server, n1 *Store) { allAre(t, n1, "k", algorithms.StatusUnknown) },
			"a start": func(t *testing.T, server *servers.Server, n1 *Store) {
				o := as("n1", n1.Generation(), nil)
				o.Seen, o.MayBegin = n1.Seen(), func(context.Context, Beginning) (Told, error) {
					return Told{}, errors.New("a mate decides with another store")
				}
				if opened, err := connect(t, Options{URL: server.URL, Now: server.Now}).Open(t.Context(), o); err == nil {
					t.Errorf("opened %+v", opened)
				}
			}} {
			t.Run(name, func(t *testing.T) {
				server := kind.start(t)
				n1, n2, admin := node(t, server, as("n1", 0, nil)), node(t, server, as("n2", 0, nil)), fixtures.Operator(t, server)
				copied := admin.HGetAll(t.Context(), TokenKey(Whole)).Val()
				serves(t, n1, "k")
				admin.Del(t.Context(), TokenKey(Whole))
				suite.Must(t, admin.HSet(t.Context(), TokenKey(Whole), copied).Err())
				serves(t, n2, "k2") // nobody has found it yet
				finds(t, server, n1)
				allAre(t, n2, "k2", algorithms.StatusUnknown)
				reopened(t, n2, n1)
			})
		}
	})
}

// TestALostQueueWaitsForItsRegionsPart: nothing is charged to a queue that the store lost, while the
// node's region has no part of the limit. With its part the queue begins full.
func TestALostQueueWaitsForItsRegionsPart(t *testing.T) {
	onBoth(t, func(t *testing.T, kind server) {
		server := kind.start(t)
		s := node(t, server, Opening{Region: "eu", Epoch: epoch})
		book := func(part quantity.Units) bool {
			return must(t, s.Book(t.Context(), []algorithms.Book{{Fence: under(epoch), Node: "n1", Units: 1,
				Target: algorithms.Target{Key: BucketKey(Whole, "k"), Terms: algorithms.Terms{Kind: algorithms.LeakyBucket,
					Window: long, Cell: long, Tick: 1 << 20, Entitlement: part, Burst: part}},
				Window: quantity.Cell(time.Now().UnixMicro() / long)}})[0]).Done
		}
		if book(0) {
			t.Error("charged without a part")
		}
		if !book(10) {
			t.Error("not charged with one")
		}
		seen, err := s.Inspect(t.Context(), algorithms.Inspect{Fence: under(epoch), Target: algorithms.Target{Key: BucketKey(Whole, "k"),
			Terms: algorithms.Terms{Kind: algorithms.LeakyBucket, Window: long, Cell: long, Tick: 1 << 20, Entitlement: 10, Burst: 10}}})
		if !Answered(err) || seen.State.Used != 11 {
			t.Errorf("%v: %d of a queue that began full with 10 and got one", err, seen.State.Used)
		}
	})
}
