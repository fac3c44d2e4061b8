package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Servers run what a Store asks of them, and know nothing of generations. They are Redis servers,
// or the twin of the scripts (chaos/lab). If a server does not answer or refuses, the error is an
// *Error; if its answer does not parse, it is another one. Safe for concurrent use if the Store is
// used that way.
type Servers interface {
	// Exec runs calls, each shard's in order and in one round trip. Each Call's Op reads its reply.
	// Exec returns a Reply for each.
	Exec(ctx context.Context, calls []Call) []Reply
	// Server returns the name of the server that holds a shard, as far as is known; empty: it is
	// not known.
	Server(ctx context.Context, shard Shard) string
	// Look runs an open script that opens nothing, and returns what it found.
	Look(ctx context.Context, shard Shard, nothing algorithms.Open) (Found, error)
	// Ping returns why a shard's server does not answer; nil: it does.
	Ping(ctx context.Context, shard Shard) error
	// TryRights is Store.TryRights for one shard.
	TryRights(ctx context.Context, shard Shard) (lacks []string, err error)
	// Memory returns what the server of a shard reports of itself.
	Memory(ctx context.Context, shard Shard) (Memory, error)
	// Keys returns keys of a shard, in a walk from 0 until next is 0, as SCAN does. It looks at about
	// count keys.
	Keys(ctx context.Context, shard Shard, from uint64, count int64) (keys []string, next uint64, err error)
	Close() error
}

// Call is a script call for the shard that its keys are in.
type Call struct {
	Shard Shard
	Op    Operation
	// Identify asks for the Replid of the Reply. If the server cannot tell its Replid, its answer
	// does not count.
	Identify bool
}

// Operation is an *Op.
type Operation interface {
	Script() algorithms.Script
	Keys() []string // KEYS after the token's
	Args() []any
	Read(reply any) error // sets the answer from a server's reply
}

// Reply is the outcome of a Call.
type Reply struct {
	Replid string // master_replid of the server that answered, where it has one
	Err    error  // an *Error, or that of Op.Read; see Error.Ran
}

// Found is what Look found of a shard.
type Found struct {
	algorithms.Opened
	Server string    // host:port
	Replid string    // master_replid of the server; empty: it has none
	Clock  time.Time // the server's clock
}

// Memory is what a server reports of itself.
type Memory struct {
	Server   string // host:port
	Reported bool   // false: it reports nothing, like the embedded Redis
	Policy   string // its maxmemory-policy
	// Keys are those of the store's database. Bytes is all memory in use, negative if not reported.
	Keys, Bytes int64
	Version     Version
}

// Op is a call of a script, and its answer once it has been read.
type Op[C call[R], R any] struct {
	Call   C
	Answer R
	keys   []string
}

// call is what package algorithms says of a script call.
type call[R any] interface {
	Script() algorithms.Script
	Keys() []string
	Args() []any
	Parse(reply any) (R, error)
}

// Script implements Operation.
func (o *Op[C, R]) Script() algorithms.Script { return o.Call.Script() }

// Keys implements Operation.
func (o *Op[C, R]) Keys() []string { return o.keys }

// Args implements Operation.
func (o *Op[C, R]) Args() []any { return o.Call.Args() }

// Read implements Operation.
func (o *Op[C, R]) Read(reply any) (err error) {
	o.Answer, err = o.Call.Parse(reply)
	return err
}

// shardOf returns the shard that all keys of a call are in. It returns an error if there is no such
// shard; the call is then not sent.
func shardOf(script algorithms.Script, keys []string) (shard Shard, err error) {
	if len(keys) > 0 {
		shard = ShardOf(keys[0])
	}
	if shard == "" {
		err = fmt.Errorf("script %s: its keys are none of quotad's; this is a mistake in quotad: report it", script.Name)
	}
	for _, key := range keys {
		if ShardOf(key) != shard {
			err = fmt.Errorf("script %s: its keys are in the shards %s and %s; this is a mistake in quotad: report it", script.Name, shard, ShardOf(key))
		}
	}
	return shard, err
}
