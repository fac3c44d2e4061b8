package store

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/algorithms"
)

// Opening says how a node wants to find its region's store.
type Opening struct {
	Region    string
	Epoch     string // of the node's policy document
	Known     uint64 // the last generation this node's journal remembers, 0: none
	Bootstrap bool   // this region never served: an empty store is no loss
}

// Opened says how the store was found.
type Opened struct {
	Generation uint64
	Lost       bool // its data may have been lost: the cell of this moment and the next are closed
}

// Open begins to work with the store. A store that stands, for this region, is taken as it is, and the node's epoch
// is put in force; an empty one is opened under a new generation, and unless the region never served, whatever it had
// promised or spent of the current cell and the next counts as promised and spent.
func (s *Store) Open(ctx context.Context, o Opening) (Opened, error) {
	for range 3 { // another node may open it between our two looks
		found, err := s.open(ctx, algorithms.Open{Expected: noGeneration, Generation: noGeneration})
		if err != nil {
			return Opened{}, err
		}
		if found.Generation == 0 {
			lost := o.Known > 0 || !o.Bootstrap
			opened, err := s.open(ctx, algorithms.Open{Generation: o.Known + 1, Region: o.Region, Epoch: o.Epoch, Lost: lost})
			if err != nil {
				return Opened{}, err
			}
			if !opened.OK {
				continue
			}
			s.stand(o.Known+1, o.Epoch)
			return Opened{Generation: o.Known + 1, Lost: lost}, nil
		}
		if found.Region != o.Region {
			return Opened{}, fmt.Errorf("the Redis at %s belongs to region %q, this node is of %q: give each region a Redis of its own", s.client.Options().Addr, found.Region, o.Region)
		}
		if found.Generation < o.Known {
			return Opened{}, fmt.Errorf("the Redis at %s stands at generation %d, this node's journal at %d: it is an old copy; empty it (FLUSHALL) and start again", s.client.Options().Addr, found.Generation, o.Known)
		}
		s.stand(found.Generation, found.Epoch)
		return Opened{Generation: found.Generation}, s.Adopt(ctx, o.Epoch)
	}
	return Opened{}, fmt.Errorf("open the Redis at %s: other nodes keep opening it; look for two clusters that share it", s.client.Options().Addr)
}

// noGeneration is never in force: opening with it only looks.
const noGeneration = 1<<64 - 1

// Adopt puts another policy epoch in force in the region's store, and this node under it. The first node of the
// region to do so does it for all; a node that works under another epoch is answered StatusUnknown from then on.
func (s *Store) Adopt(ctx context.Context, epoch string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	g := s.Guard()
	c := algorithms.Adopt{Generation: g.Generation, Expected: g.Epoch, Epoch: epoch}
	n, err := s.client.Eval(ctx, algorithms.AdoptScript.Source, []string{TokenKey}, c.Args()...).Int64()
	if err != nil {
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, err)
	}
	if n != 1 {
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, ErrNotOpen)
	}
	s.stand(g.Generation, epoch)
	return nil
}

func (s *Store) open(ctx context.Context, c algorithms.Open) (algorithms.Opened, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	s.now() // a driven server takes its time from here
	reply, err := s.client.Eval(ctx, algorithms.OpenScript.Source, []string{TokenKey}, c.Args()...).Result()
	if err != nil {
		return algorithms.Opened{}, fmt.Errorf("open the Redis at %s: %w; check that it runs and that redis.url is right", s.client.Options().Addr, err)
	}
	return c.Parse(reply)
}

func (s *Store) stand(generation uint64, epoch string) {
	s.guard.Store(&algorithms.Guard{Generation: generation, Epoch: epoch})
}
