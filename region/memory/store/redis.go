package store

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// redisServers are Servers that run on Redis. Safe for concurrent use.
type redisServers struct {
	topology
	address Address
}

// batch is a list of calls on its way to the servers. Goroutines that run parts of it touch
// different replies.
type batch struct {
	servers *redisServers
	calls   []Call
	replies []Reply
}

// pause is how long a call waits if its slot is being moved.
const pause = 10 * time.Millisecond

// Exec implements Servers. It sends each server's calls as one pipeline, to all servers at once. A
// call that did not run because it reached the wrong server, or came at the wrong time, is sent
// once more.
func (r *redisServers) Exec(ctx context.Context, calls []Call) []Reply {
	b := &batch{servers: r, calls: calls, replies: make([]Reply, len(calls))}
	all := make([]int, len(calls))
	for i := range calls {
		all[i] = i
	}
	again := b.everywhere(ctx, all)
	if len(again) == 0 {
		return b.replies
	}
	moved := r.refresh()
	if slices.ContainsFunc(again, func(i int) bool {
		return faultOf(b.replies[i].Err).resend == afterPause
	}) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return b.replies
		}
	}
	select {
	case <-moved:
		b.everywhere(ctx, again)
	case <-ctx.Done(): // each call keeps its first error
	}
	return b.replies
}

// everywhere sends the chosen calls to their servers and returns those that may be sent again.
func (b *batch) everywhere(ctx context.Context, chosen []int) (again []int) {
	masters := make(map[Shard]*redis.Client, 1)
	parts := make(map[*redis.Client][]int, 1)
	for _, i := range chosen {
		shard := b.calls[i].Shard
		client, known := masters[shard]
		if !known {
			var err error
			if client, err = b.servers.master(ctx, shard); err != nil {
				b.replies[i].Err = Failed(b.servers.address.String(), "script "+
					b.calls[i].Op.Script().Name, err)
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

// at sends calls to one server. If the server does not know a script, at loads the script and sends
// those calls once more. It returns the calls that may be sent again, to another server or later.
func (b *batch) at(ctx context.Context, client *redis.Client, chosen []int) (again []int) {
	unknown, again := b.send(ctx, client, chosen)
	if len(unknown) == 0 {
		return again
	}
	script := b.calls[unknown[0]].Op.Script()
	if err := client.ScriptLoad(ctx, script.Source).Err(); err != nil {
		for _, i := range unknown {
			b.replies[i].Err = Failed(client.Options().Addr, "load script "+script.Name, err)
		}
		return again
	}
	_, back := b.send(ctx, client, unknown)
	return append(again, back...)
}

// send sends calls as one pipeline. If a call asks for the identity of the server's data, the
// pipeline ends with that question. send returns the calls whose script the server does not know,
// and those that may be sent again.
func (b *batch) send(ctx context.Context, client *redis.Client, chosen []int) (unknown,
	again []int) {
	pipe := client.Pipeline()
	cmds := make([]*redis.Cmd, len(chosen))
	var identity *redis.StringCmd
	for n, i := range chosen {
		c := &b.calls[i]
		keys := append([]string{TokenKey(c.Shard)}, c.Op.Keys()...)
		cmds[n] = pipe.EvalSha(ctx, c.Op.Script().SHA, keys, c.Op.Args()...)
	}
	if slices.ContainsFunc(chosen, func(i int) bool { return b.calls[i].Identify }) {
		identity = pipe.Info(ctx, "replication")
	}
	execute(ctx, pipe)
	found, lost := "", error(nil)
	if identity != nil {
		found, lost = replid(identity)
	}
	var refresh bool
	for n, i := range chosen {
		c := &b.calls[i]
		reply, err := cmds[n].Result()
		if err == nil && c.Identify {
			err = lost
		}
		if err == nil {
			b.replies[i] = Reply{Replid: found, Err: c.Op.Read(reply)}
			continue
		}
		b.replies[i] = Reply{Err: Failed(client.Options().Addr, "script "+c.Op.Script().Name, err)}
		if cmds[n].Err() == nil { // the script has run
			continue
		}
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
		b.servers.refresh()
	}
	return unknown, again
}
