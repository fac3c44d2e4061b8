package envoys

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

// slow is a store that has what is asked for, and takes some time for each charge.
type slow struct {
	mute
	takes time.Duration

	mu                 sync.Mutex
	now, most, charged int
}

func (s *slow) Assign(_ context.Context, _ []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	all := make([]algorithms.Assigned, len(calls))
	for i, c := range calls {
		all[i] = algorithms.Assigned{Held: c.Held, Returned: c.Returned, Head: algorithms.Head{
			Status: algorithms.StatusOK, Now: quantity.StoreTime(time.Now().UnixMicro())}}
	}
	return all
}

func (s *slow) Charge(context.Context, *rules.Rules, *rules.Applied, quantity.Units) bool {
	s.mu.Lock()
	s.now++
	s.most = max(s.most, s.now)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now--
	s.charged++
	return true
}

// running returns an assigner that runs until end is called, with a store that takes so long for
// each charge.
func running(t *testing.T, takes time.Duration) (a *Assigner, store *slow, end func()) {
	c := newAssigner(t).config
	store = &slow{mute: c.Rules.(mute), takes: takes}
	c.Rights, c.Limiter, c.Now, c.Elapsed = store, store, time.Now, nil
	a, end = run(t, c)
	return a, store, end
}

// run runs an assigner until end is called.
func run(t *testing.T, c Config) (a *Assigner, end func()) {
	a = New(c)
	ctx, cancel := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	runs.Go(func() { a.Run(ctx) })
	return a, func() {
		cancel()
		runs.Wait()
	}
}

// TestManyNewBuckets: all bucket ids of an Envoy that begins have assignments within two seconds,
// and the store has no more than some charges at a time. A store that is slow is not asked for more
// and more.
func TestManyNewBuckets(t *testing.T) {
	for takes, want := range map[time.Duration]int{2 * time.Millisecond: MaxBuckets, time.Minute: 0} {
		t.Run(takes.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				a, store, end := running(t, takes)
				defer end()
				s := opened(t, a)
				s.Report(usagesOf("account", 0, MaxBuckets))
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if got := int(a.Stats().Assigned); got != want || store.most > movers*together {
					t.Errorf("%d bucket ids have assignments, want %d; %d charges were made at a time",
						got, want, store.most)
				}
			})
		})
	}
}

// TestBucketsAreForgotten: a bucket is forgotten when no Envoy wants it any more.
func TestBucketsAreForgotten(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, _, end := running(t, time.Millisecond)
		defer end()
		s := opened(t, a)
		s.Report(usagesOf("account", 0, MaxBuckets))
		time.Sleep(2 * time.Second)
		before := a.Stats().Buckets
		s.Close()
		time.Sleep(time.Minute)
		synctest.Wait()
		if after := a.Stats().Buckets; before < MaxBuckets || after > 0 {
			t.Errorf("%d buckets are worked on, %d after their Envoy has gone", before, after)
		}
	})
}
