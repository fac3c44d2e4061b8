package store

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// call is what package algorithms says of a script call.
type call[R any] interface {
	Keys() []string
	Args() []any
	Parse(reply any) (R, error)
}

// item is one script call of a pipeline.
type item[R any] struct {
	script algorithms.Script
	shard  Shard
	keys   []string
	args   []any
	parse  func(any) (R, error)
	err    error // why it cannot be sent
}

// prepare makes a call an item of a pipeline.
func prepare[R any](script algorithms.Script, c call[R]) item[R] {
	keys := c.Keys()
	it := item[R]{script: script, args: c.Args(), parse: c.Parse}
	it.shard, it.err = shardOf(script, keys)
	it.keys = append([]string{TokenKey(it.shard)}, keys...)
	return it
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

// batch is a list of calls on its way. Goroutines that run parts of it touch different results.
type batch[R any] struct {
	store   *Store
	held    *standing
	items   []item[R]
	results []Result[R]
}

// pause is how long a call waits whose slot is being moved.
const pause = 10 * time.Millisecond

// run sends the calls of each server as one pipeline, to all servers at once. Calls that did not run because of where
// they were sent, or when, are sent again, once.
func run[R any](ctx context.Context, s *Store, items []item[R]) []Result[R] {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	b := &batch[R]{store: s, held: s.standing(), items: items, results: make([]Result[R], len(items))}
	all := make([]int, 0, len(items))
	for i := range items {
		if b.results[i].Err = items[i].err; items[i].err == nil {
			all = append(all, i)
		}
	}
	again := b.everywhere(ctx, all)
	if len(again) == 0 {
		return b.results
	}
	moved := s.topology.refresh()
	for _, i := range again {
		if faultOf(b.results[i].Err).resend == afterPause {
			moved = after(ctx, moved, pause)
			break
		}
	}
	select {
	case <-moved:
		b.everywhere(ctx, again)
	case <-ctx.Done(): // each has its error
	}
	return b.results
}

// after returns a channel that is closed when c is and a time has passed, or ctx has ended.
func after(ctx context.Context, c <-chan struct{}, d time.Duration) <-chan struct{} {
	both := make(chan struct{})
	go func() {
		defer close(both)
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
		select {
		case <-c:
		case <-ctx.Done():
		}
	}()
	return both
}

// everywhere sends the chosen calls and returns those that may be sent again.
func (b *batch[R]) everywhere(ctx context.Context, chosen []int) (again []int) {
	masters := make(map[Shard]*redis.Client, 1)
	parts := make(map[*redis.Client][]int, 1)
	for _, i := range chosen {
		shard := b.items[i].shard
		client, known := masters[shard]
		if !known {
			var err error
			if client, err = b.store.topology.master(ctx, shard); err != nil {
				b.results[i].Err = failed(b.store.address.String(), "script "+b.items[i].script.Name, err)
				continue
			}
			masters[shard] = client
		}
		parts[client] = append(parts[client], i)
	}
	if len(parts) == 1 {
		for client, part := range parts {
			return b.at(ctx, client, part)
		}
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	for client, part := range parts {
		all.Go(func() {
			back := b.at(ctx, client, part)
			mu.Lock()
			defer mu.Unlock()
			again = append(again, back...)
		})
	}
	all.Wait()
	return again
}

// at sends calls to one server, and those whose script it does not know once more when it has been given it. It returns
// those that may be sent again, to another server or later.
func (b *batch[R]) at(ctx context.Context, client *redis.Client, chosen []int) (again []int) {
	unknown, again := b.send(ctx, client, chosen)
	if len(unknown) == 0 {
		return again
	}
	script := b.items[unknown[0]].script
	if err := client.ScriptLoad(ctx, script.Source).Err(); err != nil {
		for _, i := range unknown {
			b.results[i].Err = failed(client.Options().Addr, "load script "+script.Name, err)
		}
		return again
	}
	_, back := b.send(ctx, client, unknown)
	return append(again, back...)
}

// send sends calls as one pipeline, which ends by asking whose data the server holds: what another store answered counts
// for nothing. It returns the calls whose script the server does not know, and those that may be sent again.
func (b *batch[R]) send(ctx context.Context, client *redis.Client, chosen []int) (unknown, again []int) {
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(chosen))
	for n, i := range chosen {
		cmds[n] = pipe.EvalSha(ctx, b.items[i].script.SHA, b.items[i].keys, b.items[i].args...)
	}
	var identity *redis.StringCmd
	for _, i := range chosen {
		if b.held.replids[b.items[i].shard] != "" {
			identity = pipe.Info(ctx, "replication")
			break
		}
	}
	execute(ctx, pipe)
	found, lost := "", error(nil)
	if identity != nil {
		found, lost = replid(identity)
	}
	var refresh bool
	for n, i := range chosen {
		reply, err := cmds[n].Result()
		if err == nil {
			b.results[i] = b.answer(client, i, reply, found, lost)
			continue
		}
		b.results[i] = Result[R]{Err: failed(client.Options().Addr, "script "+b.items[i].script.Name, err)}
		f := faultOf(err)
		refresh = refresh || f.refresh
		switch f.resend {
		case loaded:
			unknown = append(unknown, i)
		case elsewhere, afterPause:
			again = append(again, i)
		}
	}
	if refresh {
		b.store.topology.refresh()
	}
	return unknown, again
}

// answer reads a reply of a server that was then found to hold the data of found, or failed to say so.
func (b *batch[R]) answer(client *redis.Client, i int, reply any, found string, lost error) (r Result[R]) {
	it := &b.items[i]
	switch {
	case lost != nil && b.held.replids[it.shard] != "":
		r.Err = failed(client.Options().Addr, "script "+it.script.Name, lost)
	case b.held.counts(it.shard, found):
		r.Value, r.Err = it.parse(reply)
	default:
		r.Value, r.Err = it.parse(strangers)
	}
	return r
}
