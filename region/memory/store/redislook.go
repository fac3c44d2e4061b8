package store

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
)

// failedAt returns the Error of a command sent to a shard's master. If the server may no longer be
// a master, it starts a search for the masters.
func (r *redisServers) failedAt(client *redis.Client, call string, err error) error {
	if faultOf(err).refresh {
		r.refresh()
	}
	return Failed(client.Options().Addr, call, err)
}

// at returns a client of a shard's master. call is the call's name in errors.
func (r *redisServers) at(ctx context.Context, shard Shard, call string) (*redis.Client, error) {
	client, err := r.master(ctx, shard)
	if err != nil {
		return nil, Failed(r.address.String(), call, err)
	}
	return client, nil
}

// Server implements Servers.
func (r *redisServers) Server(ctx context.Context, shard Shard) string {
	client, err := r.master(ctx, shard)
	if err != nil {
		return ""
	}
	return client.Options().Addr
}

// openCall is the name in errors of the calls that open a store.
const openCall = "open the store"

// Look implements Servers.
func (r *redisServers) Look(ctx context.Context, shard Shard, nothing algorithms.Open) (found Found,
	err error) {
	client, err := r.at(ctx, shard, openCall)
	if err != nil {
		return found, err
	}
	pipe := client.Pipeline()
	token := pipe.Eval(ctx, algorithms.OpenScript.Source, []string{TokenKey(shard)},
		nothing.Args()...)
	info := pipe.Info(ctx, "replication")
	clock := pipe.Time(ctx)
	execute(ctx, pipe)
	found.Server = client.Options().Addr
	reply, err := token.Result()
	if err == nil {
		found.Replid, err = replid(info)
	}
	if err == nil {
		found.Clock, err = clock.Result()
	}
	if err != nil {
		return found, r.failedAt(client, openCall, err)
	}
	found.Opened, err = nothing.Parse(reply)
	return found, err
}

// Ping implements Servers.
func (r *redisServers) Ping(ctx context.Context, shard Shard) error {
	client, err := r.at(ctx, shard, "ping")
	if err != nil {
		return err
	}
	if err := client.Ping(ctx).Err(); err != nil {
		return r.failedAt(client, "ping", err)
	}
	return nil
}

// memoryCall is the name of Memory in errors.
const memoryCall = "read its memory"

// Memory implements Servers.
func (r *redisServers) Memory(ctx context.Context, shard Shard) (Memory, error) {
	client, err := r.at(ctx, shard, memoryCall)
	if err != nil {
		return Memory{}, err
	}
	m := Memory{Server: client.Options().Addr}
	pipe := client.Pipeline()
	memory, keyspace := pipe.Info(ctx, "memory"), pipe.Info(ctx, "keyspace")
	program := pipe.Info(ctx, "server")
	execute(ctx, pipe)
	text, err := memory.Result()
	if notSupported(err) {
		return m, nil
	}
	if err == nil {
		err = keyspace.Err()
	}
	if err != nil {
		return m, r.failedAt(client, memoryCall, err)
	}
	m.Reported, m.Policy, m.Keys = true, infoField(text, "maxmemory_policy"), keysIn(keyspace.Val(),
		client.Options().DB)
	m.Version = versionIn(m.Server, program.Val())
	if m.Bytes, err = strconv.ParseInt(infoField(text, "used_memory"), 10, 64); err != nil {
		m.Bytes = -1
	}
	return m, nil
}

// keysIn reads how many keys a database has. A database without keys is not listed, and has 0.
func keysIn(keyspace string, db int) int64 {
	keys, _, _ := strings.Cut(strings.TrimPrefix(infoField(keyspace, fmt.Sprintf("db%d", db)),
		"keys="), ",")
	n, _ := strconv.ParseInt(keys, 10, 64)
	return n
}

// infoField reads a field of an INFO reply; empty if it is missing.
func infoField(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
