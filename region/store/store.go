package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's Redis, as the generation it was opened under. Safe for concurrent use.
type Store struct {
	client  *redis.Client
	timeout time.Duration
	now     func() time.Time
	guard   atomic.Pointer[algorithms.Guard]
}

// Options say how to reach a Redis.
type Options struct {
	URL     string           // redis://[user:password@]host:port[/db]
	Timeout time.Duration    // bounds each round trip; 0: DefaultTimeout
	Now     func() time.Time // the node's wall clock; nil: time.Now
}

// DefaultTimeout bounds a round trip to the region's own Redis.
const DefaultTimeout = 50 * time.Millisecond

// Connect prepares a store; it does not talk to it yet.
func Connect(o Options) (*Store, error) {
	opts, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, fmt.Errorf("redis url %q: %w; write it like redis://127.0.0.1:6379/0", o.URL, err)
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	// A retry of a script whose reply was lost would charge again, and a deadline must be one.
	opts.MaxRetries = -1
	opts.ContextTimeoutEnabled = true
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = o.Timeout, o.Timeout, o.Timeout
	opts.DialerRetries = 1
	opts.DisableIdentity = true
	s := &Store{client: redis.NewClient(opts), timeout: o.Timeout, now: o.Now}
	s.guard.Store(&algorithms.Guard{})
	return s, nil
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// Guard returns the generation and epoch that scripts run under; zero before Open.
func (s *Store) Guard() algorithms.Guard { return *s.guard.Load() }

// current returns the guard with the node's clock of this moment.
func (s *Store) current() algorithms.Guard {
	g := *s.guard.Load()
	g.Clock = s.now().UnixMicro()
	return g
}

// Result is a script's answer, or why there is none. After an error it is unknown whether the script ran.
type Result[R any] struct {
	Value R
	Err   error
}

// Decide runs decisions in one round trip, in order; the guards of the calls are filled in.
func (s *Store) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	g := s.current()
	items := make([]item[algorithms.Decided], len(calls))
	for i := range calls {
		c := calls[i]
		c.Guard = g
		keys := make([]string, 1, 1+len(c.Buckets))
		keys[0] = TokenKey
		for _, b := range c.Buckets {
			keys = append(keys, b.Key)
		}
		items[i] = item[algorithms.Decided]{algorithms.DecideScript, keys, c.Args(), c.Parse}
	}
	return run(ctx, s, items)
}

// Lend runs debits in one round trip, in order; the guards of the calls are filled in.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	g := s.current()
	items := make([]item[algorithms.Given], len(calls))
	for i := range calls {
		c := calls[i]
		c.Guard = g
		items[i] = item[algorithms.Given]{algorithms.LendScript, []string{TokenKey, c.Key}, c.Args(), c.Parse}
	}
	return run(ctx, s, items)
}

// Credit runs credits in one round trip, in order; the guards of the calls are filled in.
func (s *Store) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	g := s.current()
	items := make([]item[algorithms.Credited], len(calls))
	for i := range calls {
		c := calls[i]
		c.Guard = g
		items[i] = item[algorithms.Credited]{algorithms.CreditScript, []string{TokenKey, c.Key}, c.Args(), c.Parse}
	}
	return run(ctx, s, items)
}

// Inspect reads the ledger of one bucket; the guard of the call is filled in.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	c.Guard = s.current()
	r := run(ctx, s, []item[algorithms.Inspected]{{algorithms.InspectScript, []string{TokenKey, c.Key}, c.Args(), c.Parse}})
	return r[0].Value, r[0].Err
}

// item is one script call of a pipeline.
type item[R any] struct {
	script algorithms.Script
	keys   []string
	args   []any
	parse  func(any) (R, error)
}

// run sends all items as one pipeline. A server that does not know a script (it never saw it, or forgot it) has run
// nothing of that item: the script is loaded there and those items are sent again, once.
func run[R any](ctx context.Context, s *Store, items []item[R]) []Result[R] {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	results := make([]Result[R], len(items))
	all := make([]int, len(items))
	for i := range all {
		all[i] = i
	}
	if unknown := send(ctx, s, items, all, results); len(unknown) > 0 {
		if err := s.client.ScriptLoad(ctx, items[unknown[0]].script.Source).Err(); err != nil {
			for _, i := range unknown {
				results[i].Err = fmt.Errorf("load script %s: %w", items[i].script.Name, err)
			}
			return results
		}
		send(ctx, s, items, unknown, results)
	}
	return results
}

// send sends the chosen items and returns those whose script the server does not know.
func send[R any](ctx context.Context, s *Store, items []item[R], chosen []int, results []Result[R]) (unknown []int) {
	pipe := s.client.Pipeline()
	cmds := make([]*redis.Cmd, len(chosen))
	for n, i := range chosen {
		cmds[n] = pipe.EvalSha(ctx, items[i].script.SHA, items[i].keys, items[i].args...)
	}
	_, _ = pipe.Exec(ctx) // each command carries its own error
	for n, i := range chosen {
		reply, err := cmds[n].Result()
		switch {
		case err == nil:
			results[i].Value, results[i].Err = items[i].parse(reply)
		case strings.HasPrefix(err.Error(), "NOSCRIPT"):
			unknown = append(unknown, i)
			fallthrough
		default:
			results[i] = Result[R]{Err: fmt.Errorf("script %s: %w", items[i].script.Name, err)}
		}
	}
	return unknown
}

// ErrNotOpen says that a store has not been opened by this node, or has been opened anew by another.
var ErrNotOpen = errors.New("the store is not open under this node's generation")
