package store

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options say how to reach a Redis.
type Options struct {
	URL string // see ParseURL
	// for a rediss URL; nil: the system's authorities, and no certificate of our own
	TLS     *tls.Config
	Timeout time.Duration    // bounds each round trip; 0: DefaultTimeout
	Now     func() time.Time // the node's wall clock; nil: time.Now
}

// DefaultTimeout bounds a round trip to the region's own Redis.
const DefaultTimeout = 50 * time.Millisecond

// MaxTimeouts is how many timeouts a round trip may take at a node that lacks processor time.
const MaxTimeouts = 40

// topology knows which Redis servers are behind a store. Safe for concurrent use.
type topology interface {
	// master returns a client of the server that holds a shard, as far as is known.
	master(ctx context.Context, shard Shard) (*redis.Client, error)
	// refresh starts finding out which servers hold what, unless that is under way. The channel is
	// closed when it is done.
	refresh() <-chan struct{}
	// Close closes the connections.
	Close() error
}

// Connect prepares a store on Redis servers. It does not talk to them yet.
func Connect(o Options) (*Store, error) {
	p, err := Redis(o)
	if err != nil {
		return nil, err
	}
	return New(p), nil
}

// Redis returns the parts of a store on Redis servers.
func Redis(o Options) (Parts, error) {
	a, err := ParseURL(o.URL)
	if err != nil {
		return Parts{}, err
	}
	if o.TLS != nil && !a.secure {
		return Parts{}, errors.New(
			"redis url: certificates are given for a connection without TLS; begin it with rediss, or drop them")
	}
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	// Errors come back with each call. go-redis would also print them, bypassing the node's log.
	redis.SetLogger(silence{})
	return Parts{Servers: redisAt(a, o), Address: a, Shards: a.shards(), Now: o.Now,
		NewSecret: rand.Text, Timeout: o.Timeout}, nil
}

// redisAt returns the Redis servers of an address.
func redisAt(a Address, o Options) *redisServers {
	r := &redisServers{address: a}
	switch base := clientOptions(a, o); a.kind {
	case sentinel:
		r.topology = newSentinels(a, base)
	case cluster:
		r.topology = newNodes(a, base)
	default:
		r.topology = single{redis.NewClient(base)}
	}
	return r
}

// silence is a logger for go-redis that prints nothing.
type silence struct{}

func (silence) Printf(context.Context, string, ...any) {}

// clientOptions returns the options of a client of one server. go-redis must not retry, because a
// script whose reply was lost would charge again; and it must respect deadlines.
func clientOptions(a Address, o Options) *redis.Options {
	opts := &redis.Options{Addr: a.servers[0], Username: a.login.user, Password: a.login.password,
		DB:         a.database,
		MaxRetries: -1, ContextTimeoutEnabled: true,
		// Every call has a deadline of its own. It is sooner, except for decisions of a starved node.
		DialTimeout: o.Timeout, ReadTimeout: MaxTimeouts * o.Timeout, WriteTimeout: o.Timeout, DialerRetries: 1,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	if a.secure {
		opts.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		if o.TLS != nil {
			opts.TLSConfig = o.TLS.Clone()
		}
	}
	return opts
}

// single is a topology of one server.
type single struct{ client *redis.Client }

func (s single) master(context.Context, Shard) (*redis.Client, error) { return s.client, nil }

func (s single) refresh() <-chan struct{} { return done }

func (s single) Close() error { return s.client.Close() }

var done = func() <-chan struct{} { c := make(chan struct{}); close(c); return c }()

// lookout runs searches for the masters, one at a time. A search belongs to no call, so that it can
// outlive a call that timed out on a dead server.
type lookout struct {
	timeout time.Duration
	search  func(context.Context)

	mu     sync.Mutex
	ends   chan struct{} // closed when the search under way ends; nil: none is under way
	closed bool
}

func (l *lookout) begin() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ends != nil {
		return l.ends
	}
	if l.closed {
		return done
	}
	l.ends = make(chan struct{})
	go func() {
		ctx, cancel := context.WithTimeout(context.Background(), l.timeout)
		defer cancel()
		l.search(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		close(l.ends)
		l.ends = nil
	}()
	return l.ends
}

// close waits for the search under way, and prevents further ones.
func (l *lookout) close() {
	l.mu.Lock()
	l.closed = true
	ends := l.ends
	l.mu.Unlock()
	if ends != nil {
		<-ends
	}
}
