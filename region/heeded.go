package region

import (
	"context"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/store"
)

// heededStore is a region's store of whose calls it is noted which were refused.
type heededStore struct {
	Store
	saw func(error) // the outcome of each call; nil: it was done
}

func heed[R any](s heededStore, all []store.Result[R]) []store.Result[R] {
	for i := range all {
		s.saw(all[i].Err)
	}
	return all
}

func (s heededStore) Decide(ctx context.Context, calls []algorithms.Decide) []store.Result[algorithms.Decided] {
	return heed(s, s.Store.Decide(ctx, calls))
}

func (s heededStore) Lend(ctx context.Context, calls []algorithms.Lend) []store.Result[algorithms.Given] {
	return heed(s, s.Store.Lend(ctx, calls))
}

func (s heededStore) Credit(ctx context.Context, calls []algorithms.Credit) []store.Result[algorithms.Credited] {
	return heed(s, s.Store.Credit(ctx, calls))
}

func (s heededStore) Recall(ctx context.Context, calls []algorithms.Recall) []store.Result[algorithms.Recalled] {
	return heed(s, s.Store.Recall(ctx, calls))
}

func (s heededStore) Restore(ctx context.Context, calls []algorithms.Restore) []store.Result[algorithms.Restored] {
	return heed(s, s.Store.Restore(ctx, calls))
}

func (s heededStore) Book(ctx context.Context, calls []algorithms.Book) []store.Result[algorithms.Booked] {
	return heed(s, s.Store.Book(ctx, calls))
}

func (s heededStore) Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error) {
	found, err := s.Store.Inspect(ctx, c)
	s.saw(err)
	return found, err
}

func (s heededStore) Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error) {
	done, err := s.Store.Refund(ctx, c)
	s.saw(err)
	return done, err
}

func (s heededStore) Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error) {
	done, err := s.Store.Reset(ctx, c)
	s.saw(err)
	return done, err
}
