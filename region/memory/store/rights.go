package store

import (
	"context"
	_ "embed"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed rights.lua
var rightsLua string

var rightsDigest = redis.NewScript(rightsLua).Hash()

// scratchKeys returns the keys on which rights are tried: a text and a hash. They live for at most
// a second.
func scratchKeys(s Shard) (text, hash string) { return string(s) + ":try", string(s) + ":try:h" }

// TryRights tries on the server of each shard, once, everything that the store's calls need, on
// keys that nothing else uses. If a single command of a script were forbidden, a request could be
// charged and not answered. The error names the rights that quotad's user must have and lacks, or
// what else the server refuses. lacks has the rights that the user lacks and that the store can do
// without.
func (s *Store) TryRights(ctx context.Context) (lacks []string, err error) {
	each := make([][]string, len(s.shards))
	err = s.each(func(i int, shard Shard) (err error) {
		ctx, cancel := context.WithTimeout(ctx, s.timeout)
		defer cancel()
		each[i], err = s.servers.TryRights(ctx, shard)
		return err
	})
	lacks = slices.Concat(each...)
	slices.Sort(lacks)
	return slices.Compact(lacks), err
}

// TryRights implements Servers.
func (r *redisServers) TryRights(ctx context.Context, shard Shard) (lacks []string, err error) {
	client, err := r.at(ctx, shard, openCall)
	if err != nil {
		return nil, err
	}
	missing, err := missingRights(ctx, client, shard)
	if err != nil {
		return nil, r.failedAt(client, openCall, err)
	}
	if slices.ContainsFunc(missing, func(right string) bool { return !slices.Contains(spare, right) }) {
		return nil, &Error{Server: client.Options().Addr, Call: openCall, Kind: "NOPERM",
			Next: nextRights + MinimalACL,
			Err:  refusal("NOPERM its user lacks the rights " + strings.Join(missing, " "))}
	}
	return missing, nil
}

// refusal is an error that a server gave to a script, treated like one given to a client.
type refusal string

func (r refusal) Error() string { return string(r) }

// RedisError implements redis.Error.
func (refusal) RedisError() {}

// missingRights returns the rights that a server's user lacks, as ACL rules that grant them, or the
// error of the first command that was refused for another reason.
func missingRights(ctx context.Context, client *redis.Client, shard Shard) ([]string, error) {
	text, hash := scratchKeys(shard)
	keys := []string{TokenKey(shard), text, hash}
	pipe := client.Pipeline()
	eval := pipe.Eval(ctx, rightsLua, keys)
	load := pipe.ScriptLoad(ctx, rightsLua)
	// The server knows by its digest what EVAL ran, even if SCRIPT LOAD is forbidden.
	evalsha := pipe.EvalSha(ctx, rightsDigest, keys)
	commands := []redis.Cmder{eval, load, evalsha,
		pipe.Info(ctx, "replication"), pipe.Info(ctx, "memory"), pipe.Ping(ctx), pipe.Time(ctx), pipe.Scan(ctx, 0, text, 1)}
	rights := []string{"eval", "script|load", "evalsha", "info", "info", "ping", "time", "scan"}
	execute(ctx, pipe)
	var missing []string
	lacks := func(right string, err error) error {
		switch {
		case err == nil || notSupported(err):
			return nil
		case faultOf(err).kind != "NOPERM":
			return err
		case keyDenied(err):
			right = "~" + Prefix + "*"
		default:
			right = "+" + right
		}
		if !slices.Contains(missing, right) {
			missing = append(missing, right)
		}
		return nil
	}
	for i, c := range commands {
		if err := lacks(rights[i], c.Err()); err != nil {
			return nil, err
		}
	}
	refused, err := eval.StringSlice()
	if err != nil {
		refused, _ = evalsha.StringSlice()
	}
	for i := 0; i+1 < len(refused); i += 2 {
		if err := lacks(refused[i], refusal(refused[i+1])); err != nil {
			return nil, err
		}
	}
	return missing, nil
}
