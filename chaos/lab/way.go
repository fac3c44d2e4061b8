package lab

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// inMemory is the server's name in errors, in place of host and port.
const inMemory = "in memory"

// Way connects a node to a Twin. It is a store.Servers without connections, goroutines or timers.
// Safe for concurrent use.
type Way struct {
	mu     sync.Mutex
	server *Twin
	closed bool
	pass   Pass // nil: no time passes
}

// Connect returns a store on the server with the usual deadline, and the Way below that store. now
// is the node's wall clock. Secrets are predictable, so that a run can be repeated.
func (s *Twin) Connect(now func() time.Time) (*store.Store, *Way) {
	return s.ConnectWithin(store.DefaultTimeout, now)
}

// ConnectWithin is Connect with another deadline.
func (s *Twin) ConnectWithin(deadline time.Duration, now func() time.Time) (*store.Store, *Way) {
	w := &Way{server: s}
	return store.New(store.Parts{Servers: w, Address: store.AddressOf(inMemory), Shards: s.shards,
		Now: now, Timeout: longest, Deadline: deadline,
		NewSecret: func() string { return w.to().newSecret() }}), w
}

// Pass lets time pass for a round trip to some servers of a Twin, which are named by their places
// (Twin.SetServers). It is called before the servers are asked and after.
type Pass func(servers []int, d time.Duration)

// Takes has round trips with decisions take time from now on, as the servers do (Twin.SetServers). One
// to several servers takes as long as the slowest. Other calls take no time: a node makes some of them
// while it holds locks.
func (w *Way) Takes(pass Pass) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pass = pass
}

// SetServer directs all further calls to another server, as after a failover. The node keeps what
// it knows of the store.
func (w *Way) SetServer(server *Twin) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.server = server
}

func (w *Way) to() *Twin {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.server
}

// Close implements store.Servers: all further calls fail.
func (w *Way) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return nil
}

// part is what a round trip has for one shard.
type part struct {
	shard  store.Shard
	places []int // of its calls among all
	calls  int   // what they count as for the server
	run    func(s *Twin, now quantity.StoreTime)
	lost   error // why no reply comes back
}

// trip makes a round trip to the servers of some shards, each of which is locked while run is called.
// decides says that it carries decisions.
func (w *Way) trip(ctx context.Context, decides bool, parts ...*part) {
	w.mu.Lock()
	closed, pass := w.closed, w.pass
	w.mu.Unlock()
	err := ctx.Err()
	if closed {
		err = redis.ErrClosed
	}
	if err != nil {
		for _, p := range parts {
			p.lost = err
		}
		return
	}
	var far, ends time.Duration
	var servers []int
	if pass != nil && decides {
		far, servers = w.to().farthest(parts)
		pass(servers, far)
	}
	const most = store.DefaultTimeout
	for _, p := range parts {
		takes := w.to().serves(p, pass == nil || decides)
		if p.lost == nil && 2*far+takes > most {
			p.lost = context.DeadlineExceeded
		}
		if errors.Is(p.lost, context.DeadlineExceeded) {
			takes = most - 2*far
		}
		ends = max(ends, takes)
	}
	if pass != nil && decides {
		pass(servers, far+ends)
	}
}

// farthest returns the servers of some shards, and how far the farthest is.
func (s *Twin) farthest(parts []*part) (far time.Duration, servers []int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		at := s.on(p.shard)
		far = max(far, s.servers[at].Far)
		if !slices.Contains(servers, at) {
			servers = append(servers, at)
		}
	}
	return far, servers
}

// serves has a server run the calls for a shard, if they reach it. It returns how long that takes, if
// they count.
func (s *Twin) serves(p *part, count bool) (takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	to, runs := &s.servers[s.on(p.shard)], false
	if to.Silent {
		p.lost = context.DeadlineExceeded
	} else {
		runs, p.lost = s.trip()
	}
	if !runs {
		return 0
	}
	if count && p.calls > 0 {
		late := error(nil)
		if takes, late = to.serve(p.calls, s.elapsed); p.lost == nil && late != nil {
			p.lost = late
			s.answerLost()
		}
	}
	p.run(s, s.clock())
	return takes
}

// Exec implements store.Servers. It makes a round trip to all shards that have calls. A shard that the
// server does not have answers as if it had no token.
func (w *Way) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	replies := make([]store.Reply, len(calls))
	var parts []*part
	of := map[store.Shard]*part{}
	for i, c := range calls {
		p := of[c.Shard]
		if p == nil {
			p = &part{shard: c.Shard}
			parts, of[c.Shard] = append(parts, p), p
		}
		p.places = append(p.places, i)
	}
	decides := false
	for _, p := range parts {
		sum, items := work(calls, p.places)
		p.calls, decides = sum, decides || items
		p.run = func(s *Twin, now quantity.StoreTime) { s.exec(p, now, calls, replies) }
	}
	w.trip(ctx, decides, parts...)
	for _, p := range parts {
		for _, i := range p.places {
			if p.lost != nil {
				replies[i] = store.Reply{Err: store.Failed(inMemory, "script "+calls[i].Op.Script().Name,
					p.lost)}
			}
		}
	}
	return replies
}

// exec runs the calls for one shard.
func (s *Twin) exec(p *part, now quantity.StoreTime, calls []store.Call, replies []store.Reply) {
	l := s.held[p.shard]
	for _, i := range p.places {
		replies[i].Replid = s.replid
		if l == nil {
			replies[i].Err = calls[i].Op.Read([]any{int64(algorithms.StatusUnknown)})
			continue
		}
		l.run(now, calls[i].Op)
	}
}

// work returns how many calls a round trip counts as for the server: each Decide counts as one. decides
// reports whether there is one.
func work(calls []store.Call, places []int) (sum int, decides bool) {
	for _, i := range places {
		if o, items := calls[i].Op.(*store.Op[algorithms.Items, algorithms.ItemsDecided]); items {
			sum, decides = sum+len(o.Call.Each), true
		} else {
			sum++
		}
	}
	return sum, decides
}

// run has the twin answer a call.
func (l *ledger) run(now quantity.StoreTime, op store.Operation) {
	switch o := op.(type) {
	case *store.Op[algorithms.Items, algorithms.ItemsDecided]:
		l.twin.AtOnce(func() {
			o.Answer = o.Call.With(func(c algorithms.Decide) algorithms.Decided {
				return l.decide(now, c)
			})
		})
	case *store.Op[algorithms.Lend, algorithms.Given]:
		o.Answer = l.twin.Lend(now, o.Call)
	case *store.Op[algorithms.Assign, algorithms.Assigned]:
		o.Answer = l.twin.Assign(now, o.Call)
	case *store.Op[algorithms.Credit, algorithms.Credited]:
		o.Answer = l.twin.Credit(now, o.Call)
	case *store.Op[algorithms.Inspect, algorithms.Inspected]:
		o.Answer = l.twin.Inspect(now, o.Call)
	case *store.Op[algorithms.Settle, algorithms.Settled]:
		o.Answer = l.settle(now, o.Call)
	case *store.Op[algorithms.Reset, algorithms.Cleared]:
		o.Answer = l.twin.Reset(now, o.Call)
	case *store.Op[algorithms.Recall, algorithms.Recalled]:
		o.Answer = l.twin.Recall(now, o.Call)
	case *store.Op[algorithms.Restore, algorithms.Restored]:
		o.Answer = l.twin.Restore(now, o.Call)
	case *store.Op[algorithms.Book, algorithms.Booked]:
		o.Answer = l.twin.Book(now, o.Call)
	case *store.Op[algorithms.Open, algorithms.Opened]:
		o.Answer = l.twin.Open(now, o.Call)
	case *store.Op[algorithms.Adopt, algorithms.Adopted]:
		o.Answer = l.twin.Adopt(o.Call)
	case *store.Op[algorithms.Nodes, algorithms.NodeTimes]:
		o.Answer = l.twin.Nodes(o.Call)
	case *store.Op[algorithms.Note, algorithms.Noted]:
		o.Answer = l.twin.Note(o.Call)
	case *store.Op[algorithms.Beat, algorithms.Beaten]:
		o.Answer = l.twin.Beat(now, o.Call)
	}
}

// visit makes a round trip to a shard's server that runs something other than calls.
func (w *Way) visit(ctx context.Context, name string, shard store.Shard,
	run func(s *Twin, now quantity.StoreTime)) error {
	p := part{shard: shard, run: run}
	if w.trip(ctx, false, &p); p.lost != nil {
		return store.Failed(inMemory, name, p.lost)
	}
	return nil
}

// Server implements store.Servers.
func (w *Way) Server(_ context.Context, shard store.Shard) string { return w.to().nameOf(shard) }

// Look implements store.Servers.
func (w *Way) Look(ctx context.Context, shard store.Shard, nothing algorithms.Open) (store.Found,
	error) {
	found := store.Found{Server: inMemory}
	err := w.visit(ctx, "open the store", shard, func(s *Twin, now quantity.StoreTime) {
		found.Opened, found.Replid, found.Clock = s.held[shard].twin.Open(now, nothing), s.replid,
			time.UnixMicro(int64(now))
	})
	return found, err
}

// Ping implements store.Servers.
func (w *Way) Ping(ctx context.Context, shard store.Shard) error {
	return w.visit(ctx, "ping", shard, func(*Twin, quantity.StoreTime) {})
}

// Keys implements store.Servers. Where the walk is, is said by the hash of keys: so it shows every key
// that is there all the while.
func (w *Way) Keys(ctx context.Context, shard store.Shard, from uint64, count int64) (keys []string, next uint64, err error) {
	err = w.visit(ctx, "list its keys", shard, func(s *Twin, _ quantity.StoreTime) {
		all := s.held[shard].twin.Buckets()
		slices.SortFunc(all, func(a, b string) int { return cmp.Compare(place(a), place(b)) })
		for _, key := range all {
			switch at := place(key); {
			case at < from:
			case int64(len(keys)) < count || at == place(keys[len(keys)-1]):
				keys = append(keys, key)
			default:
				next = at
				return
			}
		}
	})
	return keys, next, err
}

// place returns where a key is in a walk, which is not 0.
func place(key string) uint64 { return max(xxhash.Sum64String(key), 1) }

// TryRights implements store.Servers. Nothing is refused.
func (w *Way) TryRights(context.Context, store.Shard) ([]string, error) { return nil, nil }

// Memory implements store.Servers. It reports nothing.
func (w *Way) Memory(ctx context.Context, shard store.Shard) (store.Memory, error) {
	m := store.Memory{Server: inMemory}
	return m, w.visit(ctx, "read its memory", shard, func(*Twin, quantity.StoreTime) {})
}
