package bench

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"
)

// leanScript admits a cost if the units used in a window allow it, and returns the units left or
// -1. It is about the least that a script can do to decide a request.
// KEYS: the bucket. ARGV: window, limit, cost.
var leanScript = redis.NewScript(`
local had = redis.call('HMGET', KEYS[1], 'w', 'u')
local used = 0
if had[1] == ARGV[1] then used = tonumber(had[2]) end
local left = tonumber(ARGV[2]) - used - tonumber(ARGV[3])
if left < 0 then return -1 end
redis.call('HSET', KEYS[1], 'w', ARGV[1], 'u', used + tonumber(ARGV[3]))
return left
`)

const (
	// leanDatabase keeps lean's keys away from those of the node.
	leanDatabase = 1
	leanWindow   = "w1"
	leanLimit    = int64(1) << 50
)

// lean decides by leanScript: a call of the script for each limit of each decision, those of one
// request in one round trip.
type lean struct {
	client *redis.Client
	limits int
}

func newLean(ctx context.Context, address string, limits int) (*lean, error) {
	c := redis.NewClient(&redis.Options{Addr: address, DB: leanDatabase, MaxRetries: -1,
		ReadTimeout: callTimeout, WriteTimeout: callTimeout, DisableIdentity: true})
	if err := leanScript.Load(ctx, c).Err(); err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("load the lean script: %w", err)
	}
	return &lean{c, limits}, nil
}

// decide decides one request for each key, and fails if one of them is denied.
func (l *lean) decide(ctx context.Context, keys []string) error {
	if len(keys) == 1 && l.limits == 1 {
		return admitted(l.call(ctx, l.client, keys[0]))
	}
	replies := make([]*redis.Cmd, 0, len(keys)*l.limits)
	_, err := l.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, key := range keys {
			for n := range l.limits {
				replies = append(replies, l.call(ctx, p, bucketName(key, n)))
			}
		}
		return nil
	})
	for _, reply := range replies {
		if err == nil {
			err = admitted(reply)
		}
	}
	return err
}

func (l *lean) call(ctx context.Context, c redis.Scripter, key string) *redis.Cmd {
	return leanScript.EvalSha(ctx, c, []string{key}, leanWindow, leanLimit, 1)
}

// admitted returns nil if a call of the script admitted its request.
func admitted(reply *redis.Cmd) error {
	left, err := reply.Int64()
	if err == nil && left < 0 {
		err = fmt.Errorf("the lean script denied a request")
	}
	return err
}
