package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"google.golang.org/grpc"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/base/held"
)

const (
	// MaxHolders bounds the buckets of which a client holds units, or denials to report, at a time.
	// Of all further buckets it asks about each request. Stats.Crowded counts how often that
	// happened.
	MaxHolders = 4096
	// maxCalls is how many calls for units are made at a time, and as many that give units back or
	// report. maxWanted is how many wait for the former; beyond it requests are asked about.
	maxCalls  = 16
	maxWanted = 256
	// callTimeout is how long such a call may take, and all those together that give units back at
	// a time; closeTimeout is for those of Close. Options.Timeout, where it is longer, is for both.
	callTimeout  = 500 * time.Millisecond
	closeTimeout = 2 * time.Second
	// sweepEvery is how often the client looks for units that are not to be spent any more, and
	// reportEvery how often it reports what it denied of a bucket.
	sweepEvery  = 100 * time.Millisecond
	reportEvery = 200 * time.Millisecond
)

// Client asks the nodes behind one connection, which all must be of one region. Safe for concurrent
// use.
type Client struct {
	rpc      quotadv1.QuotaServiceClient
	invalid  error // what is wrong with the options
	options  Options
	prefetch bool
	batches  *batches
	local    *localLimiter // for OnUnreachable: Local
	owned    io.Closer     // the connection of Dial, or nil
	clock    *held.Clock
	counters counters
	wanted   chan wanted
	ending   context.Context // over when Close begins
	end      context.CancelFunc
	working  sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	holders map[*Bucket]struct{}
}

// New returns a client of a connection, which stays the caller's: Close does not close it. The
// caller calls Close before it closes the connection.
func New(conn grpc.ClientConnInterface, o Options) *Client {
	c := &Client{rpc: quotadv1.NewQuotaServiceClient(conn), invalid: o.Validate(),
		options: o.withDefaults(), local: newLocalLimiter(o.Local), clock: held.NewClock(),
		wanted: make(chan wanted, maxWanted), holders: map[*Bucket]struct{}{}}
	c.batches = &batches{rpc: c.rpc, timeout: c.options.Timeout, counters: &c.counters,
		closed: o.Unbatched}
	c.prefetch = o.Prefetch && c.invalid == nil
	c.ending, c.end = context.WithCancel(context.Background())
	if c.prefetch {
		for range maxCalls {
			c.working.Go(c.fillWanted)
		}
		c.working.Go(c.sweepAll)
	}
	return c
}

// Bucket returns a handle for requests of a domain with these descriptors. Keep it: each handle
// holds units of its own. It needs no end.
func (c *Client) Bucket(domain string, descriptors map[string]string) *Bucket {
	return &Bucket{client: c, domain: domain, descriptors: maps.Clone(descriptors)}
}

// Close gives back all units that the client holds, within about three seconds, or about twice
// Options.Timeout where that is longer. From then on Allow asks a node about each request. Close
// waits for calls of Check under way; those of a client that Dial made end with an error, and so
// does each later one. The error says how many of the units did not go back.
func (c *Client) Close() error {
	c.mu.Lock()
	again := c.closed
	c.closed = true
	c.mu.Unlock()
	if again {
		return nil
	}
	c.end()
	c.working.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), max(closeTimeout, c.options.Timeout))
	defer cancel()
	var err error
	if untold := c.sweep(ctx, true); untold > 0 {
		err = fmt.Errorf(
			"quotad: close: %d units were not given back; they count as used until their windows end",
			untold)
	}
	if c.owned != nil {
		err = errors.Join(err, c.owned.Close())
	}
	c.batches.close()
	return err
}

// hold notes that a bucket may hold units, or has denials to report. It reports whether it may.
func (c *Client) hold(b *Bucket) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	if _, known := c.holders[b]; !known && len(c.holders) >= MaxHolders {
		c.counters.crowded.Add(1)
		return false
	}
	c.holders[b] = struct{}{}
	return true
}
