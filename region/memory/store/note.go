package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Beat makes every shard show its time, so that a node without requests learns it too. It fails
// with ErrUnknownStore if the store is not open under this node's generation and the given epoch,
// or the server's data may not be those that the store was opened on.
func (s *session) Beat(ctx context.Context, epoch string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	id := s.identity()
	if s.isOver(id) {
		return ErrUnknownStore
	}
	named := make([]map[string]quantity.StoreTime, len(s.shards))
	err := s.each(func(i int, shard Shard) error {
		c := algorithms.Beat{Fence: s.fence(shard, id, algorithms.Fence{Epoch: epoch})}
		op := &Op[algorithms.Beat, algorithms.Beaten]{Call: c}
		sent := Call{Shard: shard, Op: op, Identify: id.replids[shard] != ""}
		beat := countsFor(op, sent, s.servers.Exec(ctx, []Call{sent})[0], id)
		// A store that refuses this node because one of the two clocks is wrong tells the time too.
		if Answered(beat.Err) && !errors.Is(beat.Err, ErrUnknownStore) {
			s.saw(shard, beat.Value.Now)
			named[i] = beat.Value.At
			return nil
		}
		return beat.Err
	})
	if err == nil {
		s.name(named)
	}
	return err
}

// name records which nodes the shards have answered.
func (s *session) name(each []map[string]quantity.StoreTime) {
	all := map[string]quantity.StoreTime{}
	for _, named := range each {
		for node, at := range named {
			all[node] = max(all[node], at)
		}
	}
	s.named.Store(&all)
}

// Named returns the nodes that the store has answered since it lost data, with when it did so last,
// as of the last Beat. It must not be changed.
func (s *session) Named() map[string]quantity.StoreTime {
	if all := s.named.Load(); all != nil {
		return *all
	}
	return nil
}

// notePatience is the shortest timeout of a note, for which no request waits.
const notePatience = time.Second

// Note makes the store remember a text of a node until the store's data are lost. It returns the
// text before, empty if there was none. It fails with ErrUnknownStore if the store is not open
// under this node's generation.
func (s *session) Note(ctx context.Context, node, text string) (before string, err error) {
	return s.note(ctx, s.Generation(), algorithms.NodeNote(node), text)
}

// Answered returns the region of the first shard, and the time that it last answered a node with; 0:
// not since its generation began. It changes nothing.
func (s *session) Answered(ctx context.Context, node string) (region string, at quantity.StoreTime,
	err error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	found, err := s.servers.Look(ctx, s.shards[0], onlyLook(node))
	if o := found.Opened; o.Answered > o.Begun {
		at = o.Answered
	}
	return found.Opened.Region, at, err
}

// note makes the first shard remember a text under a name, unless the text is empty. It returns the
// text before.
func (s *session) note(ctx context.Context, generation uint64, name,
	text string) (before string, err error) {
	c := algorithms.Note{Generation: generation, Name: name, Text: text}
	noted, err := token[algorithms.Note, algorithms.Noted](ctx, s, max(s.timeout, notePatience),
		s.shards[0], c)
	if err == nil && !noted.OK {
		err = ErrUnknownStore
	}
	if err != nil {
		return "", fmt.Errorf("have the store remember %s: %w", name, err)
	}
	return noted.Before, nil
}
