package store

import (
	"context"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// look reads all tokens, and whose data their servers hold.
func (s *Store) look(ctx context.Context, node string) (looks, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	all := make(looks, len(s.shards))
	return all, s.each(func(i int, shard Shard) (err error) {
		all[i], err = s.lookAt(ctx, shard, node)
		return err
	})
}

func (s *Store) lookAt(ctx context.Context, shard Shard, node string) (look, error) {
	client, err := s.topology.master(ctx, shard)
	if err != nil {
		return look{}, failed(s.address.String(), openCall, err)
	}
	l := look{shard: shard, at: client.Options().Addr}
	before := s.now()
	pipe := client.Pipeline()
	token := pipe.Eval(ctx, algorithms.OpenScript.Source, []string{TokenKey(shard)}, onlyLook(node).Args()...)
	info := pipe.Info(ctx, "replication")
	clock := pipe.Time(ctx)
	execute(ctx, pipe)
	reply, err := token.Result()
	if err == nil {
		l.server, err = replid(info)
	}
	var now time.Time
	if err == nil {
		now, err = clock.Result()
	}
	if err != nil {
		if faultOf(err).refresh {
			s.topology.refresh()
		}
		return look{}, failed(l.at, openCall, err)
	}
	l.apart = now.Sub(before)
	l.Opened, err = onlyLook(node).Parse(reply)
	return l, err
}

func (s *Store) openToken(ctx context.Context, shard Shard, c algorithms.Open) (algorithms.Opened, error) {
	return evalToken(ctx, s, s.timeout, shard, algorithms.OpenScript, c)
}

func (s *Store) adoptToken(ctx context.Context, shard Shard, c algorithms.Adopt) (algorithms.Adopted, error) {
	return evalToken(ctx, s, s.timeout, shard, algorithms.AdoptScript, c)
}

const notePatience = time.Second

func (s *Store) noteToken(ctx context.Context, shard Shard, c algorithms.Note) (algorithms.Noted, error) {
	return evalToken(ctx, s, max(s.timeout, notePatience), shard, algorithms.NoteScript, c) // no request waits for it
}

func (s *Store) beatToken(ctx context.Context, shard Shard, c algorithms.Beat) (algorithms.Beaten, error) {
	return evalToken(ctx, s, s.timeout, shard, algorithms.BeatScript, c)
}

// tokenCall is what package algorithms says of a call of a token's script, which has no key but the token's.
type tokenCall[R any] interface {
	Args() []any
	Parse(reply any) (R, error)
}

// evalToken runs a script of a token, given in full: such calls are rare.
func evalToken[R any](ctx context.Context, s *Store, timeout time.Duration, shard Shard, script algorithms.Script, c tokenCall[R]) (r R, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	client, err := s.topology.master(ctx, shard)
	if err != nil {
		return r, failed(s.address.String(), script.Name, err)
	}
	reply, err := client.Eval(ctx, script.Source, []string{TokenKey(shard)}, c.Args()...).Result()
	if err != nil {
		if faultOf(err).refresh {
			s.topology.refresh()
		}
		return r, failed(client.Options().Addr, script.Name, err)
	}
	return c.Parse(reply)
}
