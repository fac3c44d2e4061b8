package envoys

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
	"github.com/quotad/quotad/region/memory/tenure"
)

// timed is a store that takes some time for each call, and notes how long it had to do.
type timed struct {
	*slow
	takes   time.Duration
	refuses atomic.Bool // it answers no call, and charges nothing

	lock         sync.Mutex
	worked       time.Duration
	calls, asked int // asked: buckets
	mostAsked    int
	now, mostNow int // calls under way
}

func (s *timed) Assign(ctx context.Context, b []*exchange.Bucket, calls []algorithms.Assign) []algorithms.Assigned {
	s.lock.Lock()
	s.worked, s.calls, s.asked = s.worked+s.takes, s.calls+1, s.asked+len(calls)
	s.mostAsked, s.now = max(s.mostAsked, len(calls)), s.now+1
	s.mostNow = max(s.mostNow, s.now)
	s.lock.Unlock()
	time.Sleep(s.takes)
	s.lock.Lock()
	s.now--
	s.lock.Unlock()
	if s.refuses.Load() {
		return s.mute.Assign(ctx, b, calls)
	}
	return s.slow.Assign(ctx, b, calls)
}

func (s *timed) Charge(ctx context.Context, r *rules.Rules, a *rules.Applied, u quantity.Units) bool {
	return !s.refuses.Load() && s.slow.Charge(ctx, r, a, u)
}

// runningOn returns an assigner that runs with a store that takes some time for each call.
func runningOn(t *testing.T, takes time.Duration, refuses bool) (a *Assigner, store *timed, end func()) {
	c := newAssigner(t).config
	store = &timed{slow: &slow{mute: c.Rules.(mute)}, takes: takes}
	store.refuses.Store(refuses)
	c.Rights, c.Limiter, c.Now, c.Elapsed = store, store, time.Now, nil
	a, end = run(t, c)
	return a, store, end
}

// waitForTurns returns how many new ids wait, and of how many streams.
func (a *Assigner) waitForTurns() (ids, streams int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.newcomers.waiting, len(a.newcomers.streams)
}

// TestNewIDsTakeTurns: twenty Envoys report as many new bucket ids as they may, at once, and another
// one a single id. All have assignments in the time that NewIDs says, and the single one is not
// behind the others. What waits is counted.
func TestNewIDsTakeTurns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, _, end := runningOn(t, 0, false)
		defer end()
		const streams = 20
		for i := range streams {
			opened(t, a).Report(usagesOf("account", i*MaxBuckets, MaxBuckets))
		}
		late := opened(t, a)
		late.Report(usagesOf("account", streams*MaxBuckets, 1))
		told, begun := 0, time.Now()
		for time.Since(begun) < time.Second {
			time.Sleep(newEvery)
			told += len(late.Take())
		}
		if told != 1 {
			t.Errorf("the last one is told %d assignments in a second", told)
		}
		synctest.Wait()
		if got := a.Stats().Shares; got > 3*NewIDs/2 {
			t.Errorf("%d ids were taken in a second, at most %d are", got, NewIDs)
		}
		if waits, _ := a.waitForTurns(); waits < streams*MaxBuckets/2 {
			t.Errorf("%d ids wait", waits)
		}
		time.Sleep(streams*MaxBuckets*time.Second/NewIDs + time.Second)
		synctest.Wait()
		ids, waiting := a.waitForTurns()
		if got := a.Stats().Assigned; got < streams*MaxBuckets || ids != 0 || waiting != 0 {
			t.Errorf("%d assignments, %d ids of %d streams wait", got, ids, waiting)
		}
	})
}

// TestOneStreamHasItsPart of the new ids: a second's are not more than NewIDsOfStream.
func TestOneStreamHasItsPart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, _, end := runningOn(t, 0, false)
		defer end()
		opened(t, a).Report(usagesOf("account", 0, MaxBuckets))
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if got := a.Stats().Shares; got < NewIDsOfStream/3 || got > NewIDsOfStream*2/3 {
			t.Errorf("%d ids were taken in half a second, about %d are", got, NewIDsOfStream/2)
		}
	})
}

// TestAssignmentsHaveAPartOfTheStore: while there is work without end, movers calls are under way at a
// time, of many buckets each, with rests between them, and new ids wait.
func TestAssignmentsHaveAPartOfTheStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, store, end := runningOn(t, 40*time.Millisecond, false)
		defer end()
		for i := range 20 {
			opened(t, a).Report(usagesOf("account", i*MaxBuckets, MaxBuckets))
		}
		const lasts, part = 10 * time.Second, movers * 10 * time.Second * restPart / (restPart + 1)
		time.Sleep(lasts)
		synctest.Wait()
		if store.worked > part+time.Second/4 || store.worked < part/2 || store.mostNow != movers {
			t.Errorf("the store worked for %v of %v, for %d calls at a time", store.worked, lasts, store.mostNow)
		}
		if store.mostAsked != together || store.asked < store.calls*together*3/4 {
			t.Errorf("%d calls were of %d buckets, at most %d", store.calls, store.asked, store.mostAsked)
		}
		if got := a.mover.waits(); got > 3*busyAt {
			t.Errorf("%d calls wait for the store", got)
		}
	})
}

// TestAStoreThatFailsIsAskedLess and less, however much waits, and what waits is bounded. When it is
// there again, all is done within seconds.
func TestAStoreThatFailsIsAskedLess(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, store, end := runningOn(t, 10*time.Millisecond, true)
		defer end()
		for i := range 3 {
			opened(t, a).Report(usagesOf("account", i*MaxBuckets, MaxBuckets))
		}
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if store.calls > movers*(10+int(5*time.Minute/restsMost)) || store.calls < int(5*time.Minute/restsMost)/2 {
			t.Errorf("%d calls in five minutes", store.calls)
		}
		if got := a.mover.waits(); got > 3*busyAt {
			t.Errorf("%d calls wait", got)
		}
		store.refuses.Store(false)
		time.Sleep(restsMost + 12*time.Second)
		synctest.Wait()
		if got := a.Stats().Assigned; got < 3*MaxBuckets {
			t.Errorf("%d assignments after it came back", got)
		}
	})
}

// TestReportsBesideSteps: a stream reports while the machine is stepped, and while it is closed, as
// streams do whose Envoys go. The race detector looks on.
func TestReportsBesideSteps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		a, _, end := runningOn(t, 0, false)
		defer end()
		var reporting sync.WaitGroup
		for i := range 4 {
			s := opened(t, a)
			reporting.Go(func() {
				for n := range 200 {
					s.Report(usagesOf("account", 10_000*i+4*n, 8))
					s.Take()
					time.Sleep(7 * time.Millisecond)
				}
			})
			reporting.Go(func() {
				time.Sleep(time.Second + time.Duration(i)*time.Millisecond)
				s.Close()
				s.Close()
			})
		}
		reporting.Wait()
		synctest.Wait()
		ids, waiting := a.waitForTurns()
		if a.idBytes != 0 || ids != 0 || waiting != 0 {
			t.Errorf("%d bytes and %d ids of no stream", a.idBytes, ids)
		}
	})
}

// TestWorkOfBeforeALossIsDropped: what waited for the store when it lost its data is not done in the
// new one.
func TestWorkOfBeforeALossIsDropped(t *testing.T) {
	a := newAssigner(t)
	s := opened(t, a)
	s.Report(usagesOf("account", 0, 10))
	if a.mover.add(a.Step()); a.mover.waits() == 0 {
		t.Fatal("nothing waits for the store")
	}
	a.Changed(tenure.Change{})
	if a.mover.waits() == 0 {
		t.Error("a change that is no loss dropped what waits")
	}
	if a.Changed(tenure.Change{Anew: true}); a.mover.waits() != 0 {
		t.Errorf("%d calls wait after a loss", a.mover.waits())
	}
	if a.mover.add(a.Step()); a.mover.waits() == 0 {
		t.Error("nothing is asked of the new store")
	}
}
