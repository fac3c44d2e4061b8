package store

import (
	"context"
	"errors"
	"os"
	"path/filepath"
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

// provoked is an error of a real server, provoked after the store is open there.
type provoked struct {
	bring func(t *testing.T, c *redis.Client)
	ran   bool
	next  string
}

// set returns a bring that changes a setting of the server.
func set(name, value string) func(*testing.T, *redis.Client) {
	return func(t *testing.T, c *redis.Client) {
		suite.Must(t, c.ConfigSet(t.Context(), name, value).Err())
	}
}

// dropped cuts the store's connections, so that it must log in again.
func dropped(t *testing.T, c *redis.Client) {
	suite.Must(t, c.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err())
}

var provocations = map[string]provoked{
	"READONLY": {next: "a failover is under way", bring: func(t *testing.T, c *redis.Client) {
		suite.Must(t, c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	}},
	"MASTERDOWN": {next: "a failover is under way", bring: func(t *testing.T, c *redis.Client) {
		suite.Must(t, c.ConfigSet(t.Context(), "replica-serve-stale-data", "no").Err(),
			c.ReplicaOf(t.Context(), "127.0.0.1", "1").Err())
	}},
	"OOM":        {next: "raise its maxmemory", bring: set("maxmemory", "1")},
	"NOREPLICAS": {next: "min-replicas-to-write", bring: set("min-replicas-to-write", "1")},
	"NOPERM": {ran: true, next: MinimalACL, bring: func(t *testing.T, c *redis.Client) {
		suite.Must(t, c.Do(t.Context(), "ACL", "SETUSER", "default", "-evalsha").Err())
	}},
	"NOAUTH": {next: "user and password", bring: func(t *testing.T, c *redis.Client) {
		set("requirepass", "horse")(t, c)
		dropped(t, c)
	}},
	"MISCONF": {next: "free its disk", bring: func(t *testing.T, c *redis.Client) {
		suite.Must(t, c.ConfigSet(t.Context(), "save", "1 1").Err())
		fails(t, c)
	}},
	"WRONGTYPE": {ran: true, next: "delete that key", bring: func(t *testing.T, c *redis.Client) {
		for _, key := range []string{TokenKey(Whole), BucketKey(Whole, "k")} {
			suite.Must(t, c.Del(t.Context(), key).Err(), c.Set(t.Context(), key, "another's", 0).Err())
		}
	}},
	"BUSY": {next: "SCRIPT KILL", bring: func(t *testing.T, c *redis.Client) {
		set("busy-reply-threshold", "1")(t, c)
		var running sync.WaitGroup
		running.Go(func() { _ = c.Eval(context.Background(), "while true do end", nil).Err() })
		for !strings.HasPrefix(errorText(c.Ping(t.Context()).Err()), "BUSY") {
		}
		t.Cleanup(func() { _ = c.ScriptKill(context.Background()).Err(); running.Wait() })
	}},
}

// fails has a server fail to save its data.
func fails(t *testing.T, c *redis.Client) {
	folder := c.ConfigGet(t.Context(), "dir").Val()["dir"]
	suite.Must(t, os.Mkdir(filepath.Join(folder, "dump.rdb"), 0o700)) // in the place of the file
	for !strings.Contains(c.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err") {
		_ = c.BgSave(t.Context()).Err()
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestErrorsOfARedis: whatever keeps a Redis from answering becomes an error that names the server
// and the next step. Nothing was admitted. If the error says that the script did not run, nothing
// was charged either.
func TestErrorsOfARedis(t *testing.T) {
	for word, p := range provocations {
		t.Run(word, func(t *testing.T) {
			server := fixtures.Process(t)
			s, client := node(t, server, first), fixtures.Operator(t, server)
			serves(t, s, "k")
			p.bring(t, client)
			r := s.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]
			wantError(t, r, word, address(server), p)
			if word != "BUSY" && word != "NOAUTH" && word != "MASTERDOWN" && word != "WRONGTYPE" {
				if used := client.HGet(t.Context(), BucketKey(Whole, "k"), "u").Val(); used != "1" {
					t.Errorf("%s units used, want 1", used)
				}
			}
		})
	}
}

func wantError(t *testing.T, r Result[algorithms.Decided], word, server string, p provoked) {
	t.Helper()
	var e *Error
	if !errors.As(r.Err, &e) {
		t.Fatalf("%+v, want an Error", r)
	}
	said := strings.Contains(e.Err.Error(), word) || word == "NOAUTH" &&
		strings.Contains(e.Err.Error(), "unauthenticated")
	if e.Kind != word || e.Ran != p.ran || e.Server != server || !said {
		t.Errorf("%+v, want %s of %s, ran: %v", e, word, server, p.ran)
	}
	for _, words := range []string{"script decide", server, p.next} {
		if !strings.Contains(r.Err.Error(), words) {
			t.Errorf("%q does not say %q", r.Err, words)
		}
	}
	if admitted(r.Value) != 0 {
		t.Errorf("admitted in spite of %v", r.Err)
	}
}

// TestErrorsOfACluster: the same of a node of a Cluster, by a store that was told it is the only
// server.
func TestErrorsOfACluster(t *testing.T) {
	t.Parallel()
	server := fixtures.Started(t)(servers.StartCluster(t.Context(), 2))
	all := masters(t, server)
	slot := int(all[0].ClusterKeySlot(t.Context(), TokenKey(Whole)).Val())
	holds := all[slot*2/servers.Slots]
	other := all[1-slot*2/servers.Slots]
	at := func(c *redis.Client) *Store {
		s := connect(t, Options{URL: "redis://" + c.Options().Addr})
		s.opened.Store(&identity{generation: 1})
		return s
	}
	call := []algorithms.Decide{charge("k", 10, 1)}
	wantError(t, at(other).Decide(t.Context(), call)[0], "MOVED", other.Options().Addr,
		provoked{next: "CLUSTER INFO"})

	s := connect(t, Options{URL: "redis://" + holds.Options().Addr})
	mustOpen(t, s, first)
	var items algorithms.Items
	items.Add(charge("k", 10, 1))
	crossing := Call{Shard: Whole, Op: &Op[algorithms.Items, algorithms.ItemsDecided]{Call: items,
		keys: []string{"{other}"}}}
	wantError(t, Result[algorithms.Decided]{Err: s.servers.Exec(t.Context(),
		[]Call{crossing})[0].Err}, "CROSSSLOT", holds.Options().Addr, provoked{next: "report it"})

	suite.Must(t, holds.Do(t.Context(), "CLUSTER", "SETSLOT", slot, "MIGRATING",
		other.Do(t.Context(), "CLUSTER", "MYID").Val()).Err())
	wantError(t, s.Decide(t.Context(), call)[0], "TRYAGAIN", holds.Options().Addr,
		provoked{next: "a slot is being moved"})
	suite.Must(t, holds.Del(t.Context(), TokenKey(Whole)).Err())
	wantError(t, s.Decide(t.Context(), call)[0], "ASK", holds.Options().Addr,
		provoked{next: "a slot is being moved"})

	suite.Must(t, holds.ClusterDelSlots(t.Context(), slot).Err())
	wantError(t, s.Decide(t.Context(), call)[0], "CLUSTERDOWN", holds.Options().Addr,
		provoked{next: "every slot needs a master"})
}

// failing makes an embedded server answer everything in some pipelines with an error.
type failing struct {
	server *servers.Refusing
	text   string
	fails  int // pipelines to come that fail
	sent   int
}

func (f *failing) DialHook(next redis.DialHook) redis.DialHook          { return next }
func (f *failing) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }
func (f *failing) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		f.sent++
		if f.fails > 0 {
			f.fails--
			f.server.SetError(f.text)
			defer f.server.SetError("")
		}
		return next(ctx, cmds)
	}
}

// TestResending: which errors make a call be sent again, and how often. Nothing is charged twice.
func TestResending(t *testing.T) {
	cases := map[string]struct {
		text  string
		again bool
		ran   bool
	}{
		"MOVED": {text: "MOVED 1 127.0.0.1:1", again: true},
		"ASK":   {text: "ASK 1 127.0.0.1:1", again: true},
		"TRYAGAIN": {text: "TRYAGAIN Multiple keys request during rehashing of slot",
			again: true},
		"LOADING":    {text: "LOADING Redis is loading the dataset in memory"},
		"MISCONF":    {text: "MISCONF Redis is configured to save RDB snapshots"},
		"EXECABORT":  {text: "EXECABORT Transaction discarded because of previous errors."},
		"WRONGPASS":  {text: "WRONGPASS invalid username-password pair or user is disabled."},
		"READONLY":   {text: "READONLY You can't write against a read only replica."},
		"any other":  {text: "ERR something", ran: true},
		"an unknown": {text: "SURPRISE", ran: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, err := servers.StartRefusing()
			s := node(t, fixtures.Started(t)(server.Server, err), first)
			serves(t, s, "k")
			f := &failing{server: server, text: c.text}
			clientOf(s).AddHook(f)
			for fails := range 3 {
				f.fails, f.sent = fails, 0
				r := s.Decide(t.Context(), []algorithms.Decide{charge("other", 10, 1)})[0]
				f.fails = 0
				served := fails == 0 || fails == 1 && c.again
				var e *Error
				switch {
				case served && (r.Err != nil || admitted(r.Value) != 1):
					t.Errorf("after %d errors: %+v", fails, r)
				case !served && (!errors.As(r.Err, &e) || e.Ran != c.ran || e.Next == "" ||
					!strings.Contains(r.Err.Error(), c.text)):
					t.Errorf("after %d errors: %+v", fails, r)
				}
				if most := map[bool]int{false: 1, true: 2}[c.again && fails > 0]; f.sent != most {
					t.Errorf("%d errors: sent %d times, want %d", fails, f.sent, most)
				}
			}
			want := quantity.Units(1)
			if c.again {
				want = 2
			}
			if used := inspect(t, s, "other", terms(10)).Used; used != want {
				t.Errorf("%d units charged, want %d", used, want)
			}
		})
	}
}

// TestNobodyThere: a call for which no connection came about has not run.
func TestNobodyThere(t *testing.T) {
	for _, url := range []string{"redis://127.0.0.1:1", "redis+sentinel://127.0.0.1:1/m",
		"redis+cluster://127.0.0.1:1"} {
		var e *Error
		s := connect(t, Options{URL: url})
		c := chargeIn(s.Shards()[0], "k")
		if r := s.Decide(t.Context(), []algorithms.Decide{c})[0]; !errors.As(r.Err, &e) || e.Ran ||
			!strings.Contains(e.Error(), "127.0.0.1:1") ||
			!strings.Contains(e.Error(), "redis.url") {
			t.Errorf("%s: %v, ran: %v", url, r.Err, e != nil && e.Ran)
		}
	}
}

// TestAWrongPassword: the error names the user or password as wrong, at the start and when it is
// changed under a running node. A script is then refused before it runs.
func TestAWrongPassword(t *testing.T) {
	t.Parallel()
	at := func(url, login string) string { return strings.Replace(url, "://", "://"+login, 1) }
	calls := func(t *testing.T, err error, kind string) {
		t.Helper()
		var e *Error
		if !errors.As(err, &e) || e.Kind != kind || e.Ran || !strings.Contains(err.Error(),
			nextLogin) {
			t.Errorf("%v: want an error of kind %s that says what to give", err, kind)
		}
	}
	open := func(t *testing.T, url string) error {
		_, err := connect(t, Options{URL: url}).Open(t.Context(), first)
		return err
	}
	t.Run("standalone", func(t *testing.T) {
		server := fixtures.Process(t)
		admin := fixtures.Operator(t, server)
		suite.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "node", "on", ">horse", "~*", "+@all").Err())
		s := connect(t, Options{URL: at(server.URL, "node:horse@")})
		mustOpen(t, s, first)
		suite.Must(t, admin.ConfigSet(t.Context(), "requirepass", "horse").Err())
		calls(t, open(t, server.URL), "NOAUTH")
		for _, login := range []string{":wrong@", "default:wrong@", "node:wrong@",
			"nobody:horse@"} {
			calls(t, open(t, at(server.URL, login)), "WRONGPASS")
		}
		suite.Must(t, admin.Do(t.Context(), "ACL", "SETUSER", "node", "resetpass", ">camel").Err())
		dropped(t, admin)
		calls(t, s.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0].Err, "WRONGPASS")
		calls(t, s.Reach(t.Context(), Whole), "WRONGPASS")
	})
	t.Run("cluster", func(t *testing.T) {
		server := fixtures.Started(t)(servers.StartCluster(t.Context(), 1))
		for _, master := range masters(t, server) {
			suite.Must(t, master.ConfigSet(t.Context(), "requirepass", "horse").Err())
		}
		calls(t, open(t, at(server.URL, ":wrong@")), "WRONGPASS")
	})
	t.Run("behind Sentinels", func(t *testing.T) {
		url, master, _ := watched(t)
		suite.Must(t, fixtures.Operator(t, master).Do(t.Context(), "ACL", "SETUSER", "node", "on",
			">horse", "~*", "+@all").Err())
		calls(t, open(t, at(url, "node:wrong@")), "WRONGPASS")
	})
}

// TestRefused: every status but OK is an error that says what happens next, and none is taken for a
// server that does not answer.
func TestRefused(t *testing.T) {
	of := algorithms.InspectScript
	if err := refused(of, algorithms.Head{Now: 7}); err != nil {
		t.Errorf("OK is %v", err)
	}
	for s := algorithms.StatusUnknown; s <= algorithms.StatusCrowded+1; s++ {
		err := refused(of, algorithms.Head{Status: s, Now: 7_000_000, LostAt: 5_000_000, Lost: 2})
		why, is := errors.AsType[*Refused](err)
		if !is || why.Status != s || why.Call != of.Name || !Answered(err) || Unreached(err) ||
			Late(err) {
			t.Errorf("%v: %+v", s, err)
		}
		if errors.Is(err, ErrUnknownStore) != (s == algorithms.StatusUnknown) {
			t.Errorf("%v is an unknown store: %v", s, err)
		}
		if _, said := whyRefused[s]; said == (s == algorithms.StatusLost ||
			s > algorithms.StatusCrowded) {
			t.Errorf("%v: nothing, or too much, says why", s)
		}
		lost, is := errors.AsType[*LostBucket](err)
		if is != (s == algorithms.StatusLost) {
			t.Errorf("%v is a lost bucket: %v", s, err)
		}
		if is && (lost.Place != 2 || lost.LostAt != 5_000_000 || lost.AnsweredAt != 7_000_000 ||
			!strings.Contains(err.Error(), "at 1970-01-01T00:00:05Z")) {
			t.Errorf("%+v: %v", lost, err)
		}
	}
	if err := errors.New("any other"); Answered(err) || !Unreached(err) {
		t.Errorf("%v counts as an answer", err)
	}
}
