package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// as returns the opening of a node that knows a generation, and whose mates confirm by name.
func as(name string, known uint64, mates map[string]*Store) Opening {
	return Opening{Region: "eu", Node: name, Epoch: epoch, Bootstrap: true, LastGeneration: known,
		MayBegin: func(_ context.Context, b Beginning) (Told, error) {
			if b.Confirm == nil {
				return Told{}, nil
			}
			var by []string
			for mate, s := range mates {
				if mate != name && s.Confirm(*b.Confirm, mate, s.Generation(), nil) {
					by = append(by, mate)
				}
			}
			return Told{Confirmed: len(b.Confirm.Without(by)) == 0}, nil
		}}
}

// two returns two nodes of a region whose store is open, and who have used it.
func two(t *testing.T, url string) map[string]*Store {
	t.Helper()
	all := map[string]*Store{}
	for _, name := range []string{"n1", "n2"} {
		all[name] = connect(t, Options{URL: url})
		mustOpen(t, all[name], as(name, 0, nil))
		serves(t, all[name], "k")
	}
	return all
}

// goesOn checks that the nodes begin another generation of which nothing was lost, and that all that
// was admitted counts.
func goesOn(t *testing.T, all map[string]*Store, used quantity.Units) {
	t.Helper()
	for _, name := range []string{"n1", "n2"} {
		if d := all[name].Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]; !errors.Is(d.Err, ErrUnknownStore) {
			t.Fatalf("%s is answered before the store is open again: %+v", name, d)
		}
	}
	known := all["n1"].Generation()
	opened := mustOpen(t, all["n1"], as("n1", known, all))
	if opened.Lost || !opened.Confirmed || opened.Generation <= known || opened.LostAt != 0 || opened.Since != known {
		t.Errorf("opened %+v after generation %d", opened, known)
	}
	if took := mustOpen(t, all["n2"], as("n2", known, all)); !took.took(opened.Generation) {
		t.Errorf("the mate opened %+v", took)
	}
	for _, name := range []string{"n1", "n2"} {
		if d := inspect(t, all[name], "k", terms(10)); d.Used < used || d.Share != 10 {
			t.Errorf("%s: %+v, want %d used of a share of 10", name, d, used)
		}
	}
	serves(t, all["n2"], "k")
}

// TestWhatLosesNothing: a first replica, a backup, and the backlog that expires after the last one went
// change master_replid. All who worked with the store confirm it, so nothing is closed.
func TestWhatLosesNothing(t *testing.T) {
	for name, happens := range map[string]func(*testing.T, *servers.Server, *redis.Client){
		"a first replica": func(t *testing.T, s *servers.Server, admin *redis.Client) {
			host, port, _ := net.SplitHostPort(address(s))
			fixtures.Process(t, "--replicaof", host+" "+port)
			suite.Eventually(t, "the replica is there", func() bool {
				return strings.Contains(admin.Info(t.Context(), "replication").Val(), "state=online")
			})
		},
		"the backlog expires": func(t *testing.T, s *servers.Server, admin *redis.Client) {
			suite.Must(t, admin.ConfigSet(t.Context(), "repl-backlog-ttl", "1").Err())
			host, port, _ := net.SplitHostPort(address(s))
			replica := fixtures.Process(t, "--replicaof", host+" "+port)
			suite.Eventually(t, "the replica is there", func() bool {
				return strings.Contains(admin.Info(t.Context(), "replication").Val(), "state=online")
			})
			before := replidOf(t, admin)
			suite.Must(t, replica.Close())
			suite.Eventually(t, "the backlog is gone", func() bool { return replidOf(t, admin) != before })
		},
		"it was a replica for a moment": func(t *testing.T, _ *servers.Server, admin *redis.Client) {
			suite.Must(t, admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(), admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := fixtures.Process(t)
			admin, all := fixtures.Operator(t, server), two(t, server.URL)
			before := replidOf(t, admin)
			happens(t, server, admin)
			if replidOf(t, admin) == before {
				t.Fatal("master_replid is the same")
			}
			goesOn(t, all, 2)
		})
	}
}

// TestWhatNobodyConfirms: where a node that worked with the store does not answer, had more from it
// than it knows, or may not be asked for, the store counts as lost.
func TestWhatNobodyConfirms(t *testing.T) {
	for name, mates := range map[string]func(t *testing.T, admin *redis.Client, all map[string]*Store) map[string]*Store{
		"n2 does not answer": func(*testing.T, *redis.Client, map[string]*Store) map[string]*Store { return nil },
		"n2 had more": func(_ *testing.T, _ *redis.Client, all map[string]*Store) map[string]*Store {
			all["n2"].saw(Whole, all["n2"].Latest()+1)
			return all
		},
		"this node forgot that it worked with it": func(t *testing.T, _ *redis.Client, all map[string]*Store) map[string]*Store {
			all["n1"] = connect(t, Options{URL: "redis://" + clientOf(all["n1"]).Options().Addr})
			return all
		},
		"this node had more": func(_ *testing.T, _ *redis.Client, all map[string]*Store) map[string]*Store {
			all["n1"].saw(Whole, all["n1"].Latest()+1)
			return all
		},
		"too many nodes": func(t *testing.T, admin *redis.Client, all map[string]*Store) map[string]*Store {
			for i := range algorithms.MaxNodes {
				suite.Must(t, admin.HSet(t.Context(), TokenKey(Whole), fmt.Sprint("seen:x", i), int64(all["n1"].Latest())).Err())
			}
			return all
		},
		"names may not be read": func(t *testing.T, admin *redis.Client, all map[string]*Store) map[string]*Store {
			suite.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "default", "-hkeys").Err())
			return all
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := fixtures.Process(t)
			admin, all := fixtures.Operator(t, server), two(t, server.URL)
			asked := mates(t, admin, all)
			suite.Must(t, admin.ReplicaOf(t.Context(), "127.0.0.1", "1").Err(), admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
			known := all["n2"].Generation()
			if opened := mustOpen(t, all["n1"], as("n1", all["n1"].Generation(), asked)); !opened.Lost || opened.Generation <= known {
				t.Errorf("opened %+v after generation %d", opened, known)
			}
			closedCells(t, all["n1"], epoch)
		})
	}
}

// TestWhoConfirmsIsDone: from its word on a node takes no answer of the generation, whichever server
// gives it, and not of a call that is under way either. If nobody goes on, it begins the next one.
func TestWhoConfirmsIsDone(t *testing.T) {
	server := fixtures.Process(t)
	all := two(t, server.URL)
	n2, known := all["n2"], all["n1"].Generation()
	on := []string{replidOf(t, fixtures.Operator(t, server))}
	c := Confirmation{Generation: known, Epoch: epoch, Begun: []quantity.StoreTime{0}, Replids: on,
		Nodes: map[string][]quantity.StoreTime{"n2": n2.Seen()}}
	for name, other := range map[string]Confirmation{
		"another generation": {Generation: known + 1, Epoch: epoch, Nodes: c.Nodes, Begun: c.Begun, Replids: on},
		"no servers":         {Generation: known, Epoch: epoch, Nodes: c.Nodes, Begun: c.Begun},
		"no times":           {Generation: known - 1, Epoch: epoch}} {
		if n2.Confirm(other, "n2", known, nil) {
			t.Errorf("%s is confirmed", name)
		}
		serves(t, n2, "k")
		c.Nodes["n2"] = n2.Seen()
	}
	clientOf(n2).AddHook(meanwhile{sync.OnceFunc(func() {
		if !n2.Confirm(Confirmation{Generation: known, Epoch: epoch, Begun: c.Begun, Replids: on,
			Nodes: map[string][]quantity.StoreTime{"n2": n2.Seen()}}, "n2", known, nil) {
			t.Error("not confirmed")
		}
	})})
	if r := n2.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]; !errors.Is(r.Err, ErrUnknownStore) || admitted(r.Value) > 0 {
		t.Errorf("a call that was under way: %+v", r)
	}
	if err := n2.Beat(t.Context(), epoch); !errors.Is(err, ErrUnknownStore) {
		t.Errorf("beat: %v", err)
	}
	if opened := mustOpen(t, n2, as("n2", known, nil)); opened.Lost || opened.Generation <= known {
		t.Errorf("opened %+v after generation %d", opened, known)
	}
	serves(t, n2, "k")
}

// meanwhile calls a function behind each pipeline of decisions, before its caller has the replies.
type meanwhile struct{ do func() }

func (m meanwhile) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (m meanwhile) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (m meanwhile) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		err := next(ctx, cmds)
		if slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return slices.Contains(c.Args(), any(algorithms.DecideScript.SHA)) }) {
			m.do()
		}
		return err
	}
}

func replidOf(t *testing.T, admin *redis.Client) string {
	t.Helper()
	return infoField(admin.Info(t.Context(), "replication").Val(), "master_replid")
}

// TestOnePrimaryGoesOn: a primary stalls, and its replica, which has all, is promoted. n1 has n2 confirm
// the replica, and then the old primary answers n2 again. What n2 decides there the other never learns:
// so n2 takes it for a store that lost its data, and confirms nobody another one.
func TestOnePrimaryGoesOn(t *testing.T) {
	old := fixtures.Process(t)
	all := two(t, old.URL)
	host, port, _ := net.SplitHostPort(address(old))
	promoted := fixtures.Process(t, "--replicaof", host+" "+port)
	admin := fixtures.Operator(t, promoted)
	suite.Eventually(t, "the replica has all", func() bool {
		return strings.Contains(admin.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	for range 2 { // the first replica changed master_replid
		for name, s := range all {
			mustOpen(t, s, as(name, s.Generation(), all))
		}
	}
	serves(t, all["n1"], "k")
	serves(t, all["n2"], "k")
	suite.Eventually(t, "the replica has all", func() bool {
		return admin.HGet(t.Context(), TokenKey(Whole), "mark").Val() == fixtures.Operator(t, old).HGet(t.Context(), TokenKey(Whole), "mark").Val()
	})
	suite.Must(t, admin.ReplicaOf(t.Context(), "NO", "ONE").Err())
	known := all["n2"].Generation()
	n1 := connect(t, Options{URL: promoted.URL})
	n1.saw(Whole, all["n1"].Latest())
	if opened := mustOpen(t, n1, as("n1", known, all)); opened.Lost || opened.Generation <= known {
		t.Fatalf("the new primary: opened %+v after generation %d", opened, known)
	}
	if opened := mustOpen(t, all["n2"], as("n2", known, nil)); !opened.Lost {
		t.Errorf("the old primary goes on: opened %+v after generation %d", opened, known)
	}
	closedCells(t, all["n2"], epoch)
}

// TestWhoBeginsConfirmsNoOther: while n2 begins another generation on its server, of which nothing is
// lost, another node asks it to confirm a replica. It does not, for it goes on with its own.
func TestWhoBeginsConfirmsNoOther(t *testing.T) {
	server := fixtures.Process(t)
	n2 := two(t, server.URL)["n2"]
	known := n2.Generation()
	o := as("n2", known, nil)
	o.Ended = known
	asked := 0
	o.Keep = func(context.Context, uint64) error {
		asked++
		if n2.Confirm(Confirmation{Generation: known, Epoch: epoch, Begun: n2.Seen(), Replids: []string{"another"}}, "n2", known, nil) {
			t.Error("it confirms another server's data")
		}
		return nil
	}
	if opened := mustOpen(t, n2, o); opened.Lost || opened.Generation <= known || asked == 0 {
		t.Errorf("opened %+v after generation %d, asked %d times", opened, known, asked)
	}
}

// TestNamesAreBounded: a store remembers a thousand nodes that it has answered, and forgets those that it
// answered longest ago.
func TestNamesAreBounded(t *testing.T) {
	server := fixtures.Process(t)
	admin, all := fixtures.Operator(t, server), two(t, server.URL)
	const more = 5 * algorithms.MaxNodes
	for i := range more {
		suite.Must(t, admin.HSet(t.Context(), TokenKey(Whole), fmt.Sprintf("seen:x%04d", i), i+1).Err())
	}
	suite.Must(t, all["n1"].Beat(t.Context(), epoch))
	left := 0
	for _, field := range admin.HKeys(t.Context(), TokenKey(Whole)).Val() {
		if strings.HasPrefix(field, "seen:") {
			left++
		}
	}
	named := all["n1"].Named()
	if left != 4*algorithms.MaxNodes || len(named) != algorithms.MaxNodes || named["n2"] == 0 || named[fmt.Sprintf("x%04d", more-1)] == 0 {
		t.Errorf("%d names are left, %d are told", left, len(named))
	}
	serves(t, all["n2"], "k")
}
