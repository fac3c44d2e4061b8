package store

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// Servers run what a Store asks of them, and know nothing of generations: Redis servers, or the
// twin of the scripts (chaos/lab). Every error is an *Error. Safe for concurrent use where the
// Store is used so.
type Servers interface {
	// Exec runs calls, in order within each shard and each shard's in one round trip, and has their
	// Answers read. It returns a reply for each.
	Exec(ctx context.Context, calls []Call) []Reply
	// Look runs an open script that opens nothing, and says what is there.
	Look(ctx context.Context, shard Shard, nothing algorithms.Open) (Found, error)
	// Ping says why a shard's server does not answer; nil: it does.
	Ping(ctx context.Context, shard Shard) error
	// TryRights is Store.TryRights for one shard.
	TryRights(ctx context.Context, shard Shard) error
	// Memory says what the server of a shard says of its memory and of all it holds.
	Memory(ctx context.Context, shard Shard) (Memory, error)
	Close() error
}

// Call is a script call for the shard that its keys are in.
type Call struct {
	Shard Shard
	Op    Operation
	// Identify asks for the Replid of the Reply: an answer of a server that cannot say it counts
	// for nothing.
	Identify bool
}

// Operation is an *Op.
type Operation interface {
	Script() algorithms.Script
	Keys() []string // KEYS after the token's
	Args() []any
	Read(reply any) error // has the answer say what a server replied
}

// Reply is what became of a Call.
type Reply struct {
	Replid string // master_replid of the server that answered, where it has one
	Err    error  // after it, it is unknown whether the script ran
}

// Found is how Look found a shard.
type Found struct {
	algorithms.Opened
	Server string    // host:port
	Replid string    // master_replid of the server; empty: it has none
	Clock  time.Time // that the server shows
}

// Memory is what a server says of its own.
type Memory struct {
	Server      string // host:port
	Known       bool   // it says something, which the embedded Redis does not
	Policy      string // its maxmemory-policy
	Keys, Bytes int64  // of the store's database, and of all; Bytes is negative where it does not say
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

// shardOf returns the shard that all keys of a call are in, and why it cannot be sent if there is none.
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
