package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

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

// Open begins to work with the store. A store that stands, for this region, is taken as it is, and the node's epoch is
// put in force if it is newer. A new generation is begun where the store is empty, where it is a copy from before the
// generation this node knows, and where another node that knew nothing of that generation opened it as if nothing had
// been lost. Unless the region never served, whatever the store had promised or spent of the current cell and the next
// then counts as promised and spent.
func (s *Store) Open(ctx context.Context, o Opening) (Opened, error) {
	for range 3 { // another node may open it between our two looks
		found, err := s.open(ctx, algorithms.Open{Expected: noGeneration, Generation: noGeneration})
		if err != nil {
			return Opened{}, err
		}
		if found.Generation != 0 && found.Region != o.Region {
			return Opened{}, fmt.Errorf("the Redis at %s belongs to region %q, this node is of %q: give each region a Redis of its own", s.client.Options().Addr, found.Region, o.Region)
		}
		if found.Generation != 0 && !hidesLoss(found, o.Known) {
			s.secret.Store(&found.Secret)
			return Opened{Generation: found.Generation}, s.adopt(ctx, found.Generation, o.Epoch)
		}
		now := s.now().UnixMicro()
		if err := s.clocksAgree(ctx, now); err != nil {
			return Opened{}, err
		}
		c := algorithms.Open{Expected: found.Generation, Region: o.Region, Epoch: o.Epoch,
			// Larger than any before, whether this node remembers it or not.
			Generation: max(o.Known+1, found.Generation+1, uint64(now/1000)),
			Lost:       o.Known > 0 || found.Generation > 0 || !o.Bootstrap,
			Seen:       max(now, s.seen.Load()),
			Secret:     rand.Text()}
		opened, err := s.open(ctx, c)
		if err != nil {
			return Opened{}, err
		}
		if opened.OK {
			s.secret.Store(&c.Secret)
			s.generation.Store(c.Generation)
			return Opened{Generation: c.Generation, Lost: c.Lost}, nil
		}
	}
	return Opened{}, fmt.Errorf("open the Redis at %s: other nodes keep opening it; look for two clusters that share it", s.client.Options().Addr)
}

// hidesLoss says whether a store that stands is not what a node knows it as: an older copy, or opened anew by another
// as if it had never held anything.
func hidesLoss(found algorithms.Opened, known uint64) bool {
	return found.Generation < known || (known > 0 && found.Generation > known && found.LostAt == 0)
}

// clocksAgree returns an error where the store's clock is further than MaxClockStep from the node's, now. A generation
// begun at such a time would hold the store's time, and with it every cell, until its clock gets there.
func (s *Store) clocksAgree(ctx context.Context, now int64) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	t, err := s.client.Time(ctx).Result()
	if err != nil {
		return fmt.Errorf("read the clock of the Redis at %s: %w", s.client.Options().Addr, err)
	}
	if apart := t.UnixMicro() - now; max(apart, -apart) > algorithms.MaxClockStep {
		return fmt.Errorf("the clock of the Redis at %s is %v from this node's: set both by NTP and start again", s.client.Options().Addr, time.Duration(apart)*time.Microsecond)
	}
	return nil
}

// noGeneration is never in force: opening with it only looks.
const noGeneration = 1<<64 - 1

// ErrOlderPolicy says that the region already works under a newer policy document.
var ErrOlderPolicy = errors.New("the region's store has a newer policy document in force")

// Adopt puts a newer policy epoch in force in the region's store. From then on a call under another epoch is answered
// StatusUnknown, whichever node makes it.
func (s *Store) Adopt(ctx context.Context, epoch string) error {
	return s.adopt(ctx, s.generation.Load(), epoch)
}

func (s *Store) adopt(ctx context.Context, generation uint64, epoch string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	c := algorithms.Adopt{Generation: generation, Epoch: epoch}
	reply, err := s.client.Eval(ctx, algorithms.AdoptScript.Source, []string{TokenKey}, c.Args()...).Result()
	if err != nil {
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, err)
	}
	switch a, err := c.Parse(reply); {
	case err != nil:
		return err
	case a.OK:
		s.generation.Store(generation)
		return nil
	case a.Epoch == "":
		return fmt.Errorf("put policy %s in force in the store: %w", epoch, ErrNotOpen)
	default:
		return fmt.Errorf("put policy %s in force: %w, %s: give this node that document, or one of a higher version", epoch, ErrOlderPolicy, a.Epoch)
	}
}

func (s *Store) open(ctx context.Context, c algorithms.Open) (algorithms.Opened, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	reply, err := s.client.Eval(ctx, algorithms.OpenScript.Source, []string{TokenKey}, c.Args()...).Result()
	if err != nil {
		return algorithms.Opened{}, fmt.Errorf("open the Redis at %s: %w; check that it runs and that redis.url is right", s.client.Options().Addr, err)
	}
	return c.Parse(reply)
}
