package store

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// Store runs scripts in a region's Redis, as the generation it was opened under. Safe for concurrent use.
type Store struct {
	client     *redis.Client
	timeout    time.Duration
	now        func() time.Time
	generation atomic.Uint64 // 0: not open
	seen       atomic.Int64  // the latest store time a script answered with
	secret     atomic.Pointer[string]
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
		return nil, fmt.Errorf("redis url %q: %s; write it like redis://127.0.0.1:6379/0", withoutUser(o.URL), urlFault(o.URL, err))
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
	redis.SetLogger(silence{}) // errors come back with each call; go-redis would also print them past the node's log
	return &Store{client: redis.NewClient(opts), timeout: o.Timeout, now: o.Now}, nil
}

// silence is a logger for go-redis that says nothing.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// withoutUser returns a url, which need not parse, without what may be its user and password.
func withoutUser(raw string) string {
	at := strings.LastIndexByte(raw, '@')
	if at < 0 {
		return raw
	}
	scheme, _, ok := strings.Cut(raw[:at], "://")
	if !ok {
		return "..." + raw[at:]
	}
	return scheme + "://..." + raw[at:]
}

// urlFault says why a url does not parse. The parser's own words may quote a part of the password.
func urlFault(raw string, err error) string {
	var parse *url.Error
	switch {
	case !errors.As(err, &parse):
		return err.Error()
	case strings.Contains(raw, "@"):
		return "does not parse; in user and password write special characters as %XX"
	}
	return parse.Err.Error()
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// Generation returns the generation that scripts run under; 0 before Open.
func (s *Store) Generation() uint64 { return s.generation.Load() }

// Secret returns what seals the receipts of this generation, the same for all nodes of the region; empty before Open.
func (s *Store) Secret() string {
	if secret := s.secret.Load(); secret != nil {
		return *secret
	}
	return ""
}

// guard fills in what the caller of a script need not know; the epoch is that of the terms it calls with.
func (s *Store) guard(g algorithms.Guard) algorithms.Guard {
	g.Generation = s.generation.Load()
	g.Clock = s.now().UnixMicro()
	return g
}

// saw notes a store time, so that a loss of the store's data is not taken to be earlier than what it has shown.
func (s *Store) saw(now int64) {
	for {
		seen := s.seen.Load()
		if now <= seen || s.seen.CompareAndSwap(seen, now) {
			return
		}
	}
}

// Result is a script's answer, or why there is none. After an error it is unknown whether the script ran.
type Result[R any] struct {
	Value R
	Err   error
}

// Decide runs decisions in one round trip, in order; of the calls' guards only the epoch need be set. Only where the
// server got to know the script in between do calls that it could not run yet follow behind the others.
func (s *Store) Decide(ctx context.Context, calls []algorithms.Decide) []Result[algorithms.Decided] {
	items := make([]item[algorithms.Decided], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.DecideScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Lend runs debits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Lend(ctx context.Context, calls []algorithms.Lend) []Result[algorithms.Given] {
	items := make([]item[algorithms.Given], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.LendScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Credit runs credits in one round trip, in order; of the calls' guards only the epoch need be set.
func (s *Store) Credit(ctx context.Context, calls []algorithms.Credit) []Result[algorithms.Credited] {
	items := make([]item[algorithms.Credited], len(calls))
	for i, c := range calls {
		c.Guard = s.guard(c.Guard)
		items[i] = prepare(algorithms.CreditScript, c)
	}
	results := run(ctx, s, items)
	for i := range results {
		s.saw(results[i].Value.Now)
	}
	return results
}

// Inspect reads the ledger of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Inspected]{prepare(algorithms.InspectScript, c)})
	return r[0].Value, r[0].Err
}

// Refund takes back what one decision charged; of the call's guard only the epoch need be set.
func (s *Store) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Refunded]{prepare(algorithms.RefundScript, c)})
	return r[0].Value, r[0].Err
}

// Reset clears the use of one bucket; of the call's guard only the epoch need be set.
func (s *Store) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	c.Guard = s.guard(c.Guard)
	r := run(ctx, s, []item[algorithms.Cleared]{prepare(algorithms.ResetScript, c)})
	return r[0].Value, r[0].Err
}

// call is what package algorithms says of a script call.
type call[R any] interface {
	Keys() []string
	Args() []any
	Parse(reply any) (R, error)
}

// prepare makes a call an item of a pipeline.
func prepare[R any](script algorithms.Script, c call[R]) item[R] {
	return item[R]{script, append([]string{TokenKey}, c.Keys()...), c.Args(), c.Parse}
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
