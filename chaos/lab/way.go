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
	far    time.Duration         // what a message takes each way
	pass   func(d time.Duration) // lets time pass; nil: no time passes
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

// Takes has round trips with decisions take time from now on: far each way, and what the server takes
// for its calls (Twin.SetService). pass lets time pass. It is called before the server is asked and
// after. Other calls take no time: a node makes some of them while it holds locks.
func (w *Way) Takes(far time.Duration, pass func(d time.Duration)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.far, w.pass = far, pass
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

// trip makes a round trip to the current server, which is locked while run is called. decides says
// that it carries decisions. The error says why no reply comes back.
func (w *Way) trip(ctx context.Context, calls int, decides bool,
	run func(s *Twin, now quantity.StoreTime)) error {
	w.mu.Lock()
	closed, far, pass := w.closed, w.far, w.pass
	w.mu.Unlock()
	switch {
	case pass == nil:
		far, pass = 0, func(time.Duration) {}
	case !decides:
		far, calls, pass = 0, 0, func(time.Duration) {}
	}
	if closed {
		return redis.ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	pass(far)
	takes, lost := w.to().serves(calls, run)
	const most = store.DefaultTimeout
	if lost == nil && 2*far+takes > most {
		lost = context.DeadlineExceeded
	}
	if errors.Is(lost, context.DeadlineExceeded) {
		pass(most - far)
		return lost
	}
	pass(far + takes)
	return lost
}

// serves has the server run calls, if they reach it. It returns how long that takes the server, and
// why no reply comes back.
func (s *Twin) serves(calls int, run func(s *Twin, now quantity.StoreTime)) (takes time.Duration, lost error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	runs, lost := s.trip()
	if runs && calls > 0 {
		late := error(nil)
		if takes, late = s.serve(calls); lost == nil && late != nil {
			lost = late
			s.answerLost()
		}
	}
	if runs {
		run(s, s.clock())
	}
	return takes, lost
}

// Exec implements store.Servers. It makes a round trip to each shard that has calls, one after the
// other. A shard that the server does not have answers as if it had no token.
func (w *Way) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	replies := make([]store.Reply, len(calls))
	var shards []store.Shard
	of := map[store.Shard][]int{} // indexes of the calls of each shard
	for i, c := range calls {
		if of[c.Shard] == nil {
			shards = append(shards, c.Shard)
		}
		of[c.Shard] = append(of[c.Shard], i)
	}
	for _, shard := range shards {
		w.execIn(ctx, shard, of[shard], calls, replies)
	}
	return replies
}

// execIn makes the round trip to one shard.
func (w *Way) execIn(ctx context.Context, shard store.Shard, places []int, calls []store.Call,
	replies []store.Reply) {
	sum, decides := work(calls, places)
	lost := w.trip(ctx, sum, decides, func(s *Twin, now quantity.StoreTime) {
		l := s.held[shard]
		for _, i := range places {
			replies[i].Replid = s.replid
			if l == nil {
				replies[i].Err = calls[i].Op.Read([]any{int64(algorithms.StatusUnknown)})
				continue
			}
			l.run(now, calls[i].Op)
		}
	})
	if lost == nil {
		return
	}
	for _, i := range places {
		replies[i] = store.Reply{Err: store.Failed(inMemory, "script "+calls[i].Op.Script().Name,
			lost)}
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
	case *store.Op[algorithms.Refund, algorithms.Refunded]:
		o.Answer = l.refund(now, o.Call)
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

// visit makes a round trip that runs something other than calls.
func (w *Way) visit(ctx context.Context, name string,
	run func(s *Twin, now quantity.StoreTime)) error {
	if lost := w.trip(ctx, 0, false, run); lost != nil {
		return store.Failed(inMemory, name, lost)
	}
	return nil
}

// Server implements store.Servers.
func (w *Way) Server(context.Context, store.Shard) string { return inMemory }

// Look implements store.Servers.
func (w *Way) Look(ctx context.Context, shard store.Shard, nothing algorithms.Open) (store.Found,
	error) {
	found := store.Found{Server: inMemory}
	err := w.visit(ctx, "open the store", func(s *Twin, now quantity.StoreTime) {
		found.Opened, found.Replid, found.Clock = s.held[shard].twin.Open(now, nothing), s.replid,
			time.UnixMicro(int64(now))
	})
	return found, err
}

// Ping implements store.Servers.
func (w *Way) Ping(ctx context.Context, _ store.Shard) error {
	return w.visit(ctx, "ping", func(*Twin, quantity.StoreTime) {})
}

// Keys implements store.Servers. Where the walk is, is said by the hash of keys: so it shows every key
// that is there all the while.
func (w *Way) Keys(ctx context.Context, shard store.Shard, from uint64, count int64) (keys []string, next uint64, err error) {
	err = w.visit(ctx, "list its keys", func(s *Twin, _ quantity.StoreTime) {
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
func (w *Way) Memory(ctx context.Context, _ store.Shard) (store.Memory, error) {
	m := store.Memory{Server: inMemory}
	return m, w.visit(ctx, "read its memory", func(*Twin, quantity.StoreTime) {})
}
