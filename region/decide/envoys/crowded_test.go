package envoys

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/quantity"
)

// crowdedOut is a store of which as many other nodes hold rights as may, until there is room.
type crowdedOut struct {
	*slow
	room atomic.Bool
}

func (s *crowdedOut) Assign(ctx context.Context, b []*exchange.Bucket,
	calls []algorithms.Assign) []algorithms.Assigned {
	all := s.slow.Assign(ctx, b, calls)
	for i, c := range calls {
		if c.Held > 0 && !s.room.Load() {
			all[i] = algorithms.Assigned{Head: algorithms.Head{Status: algorithms.StatusCrowded,
				Now: quantity.StoreTime(time.Now().UnixMicro())}}
		}
	}
	return all
}

// TestANodeWithoutRoomAssignsNothing: a node of a region with more nodes than may hold rights of a
// cell assigns nothing, asks now and then, and counts how often in vain. When there is room, its
// Envoy gets its part.
func TestANodeWithoutRoomAssignsNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newAssigner(t).config
		store := &crowdedOut{slow: &slow{mute: c.Rules.(mute)}}
		c.Rights, c.Limiter, c.Now, c.Elapsed = store, store, time.Now, nil
		a, end := run(t, c)
		defer end()
		s := opened(t, a)
		// report reports once, and returns what the Envoy is told until its next report.
		report := func() (told []Assignment) {
			s.Report([]Usage{{ID: map[string]string{"account": "0"}, Denied: 50}})
			for range 50 {
				time.Sleep(100 * time.Millisecond)
				synctest.Wait()
				told = append(told, s.Take()...)
			}
			return told
		}
		for range 4 {
			if told := report(); len(told) > 0 {
				t.Errorf("without room it is told %+v", told)
			}
		}
		// Two calls of a cell in a second, and one each two seconds later on; two cells at a time.
		if n := testutil.ToFloat64(a.counts.crowded); n < 8 || n > 40 {
			t.Errorf("asked in vain %v times in 20 s", n)
		}
		store.room.Store(true)
		if told := report(); len(told) == 0 || told[0].Abandon || told[0].Rate < 1 {
			t.Errorf("when there is room it is told %+v", told)
		}
	})
}
