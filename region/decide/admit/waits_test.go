package admit

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/region/decide/queue"
)

// TestNobodyIsDeniedForWantOfTime: many more callers than the store has time for, each as patient as
// the case says, keep asking on limits that nobody reaches. Those that wait long enough are all
// decided. Of the others some get an *Overload, nobody a denial, the store decides as many in time as
// it can, and hardly any for callers who have given up.
func TestNobodyIsDeniedForWantOfTime(t *testing.T) {
	const lasts = time.Second / 2
	for _, callers := range []int{256, 2000} {
		for _, patience := range []time.Duration{0, 20 * time.Millisecond, 50 * time.Millisecond, time.Second} {
			t.Run(fmt.Sprintf("%d callers, %v", callers, patience), func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					n, s := busyNode(t)
					s.Script = 100 * time.Microsecond
					var decided, refused, number atomic.Int64
					ends := time.Now().Add(lasts)
					ask := func() {
						ctx, cancel := t.Context(), func() {}
						if patience > 0 {
							ctx, cancel = context.WithTimeout(ctx, patience)
						}
						defer cancel()
						q := request(distinct(int(number.Add(1))))
						q.Domain = "flood"
						d, err := n.Check(ctx, q)
						switch {
						case queue.IsOverload(err):
							refused.Add(1)
							time.Sleep(patience / 2)
						case err != nil || d.Reason != WithinLimit || ctx.Err() != nil:
							t.Errorf("%+v, %v, %v", d, err, ctx.Err())
						default:
							decided.Add(1)
						}
					}
					var all sync.WaitGroup
					for range callers {
						all.Go(func() {
							for time.Now().Before(ends) {
								ask()
							}
						})
					}
					all.Wait()
					best := int64(lasts / s.Script)
					if enough := (patience == 0 || patience == time.Second); enough && refused.Load() > 0 ||
						decided.Load() < best*8/10 {
						t.Errorf("%d decided of %d that the store has time for, %d refused: %+v", decided.Load(), best, refused.Load(), n.queue.Load())
					}
					if nobody := s.Decided.Load() - decided.Load(); nobody > s.Decided.Load()/50 {
						t.Errorf("%d of %d were charged for nobody", nobody, s.Decided.Load())
					}
				})
			})
		}
	}
}

// What Envoys report waits for its turn, too: it is charged beside other requests.
func TestAChargeWaitsForItsTurn(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n, _ := busyNode(t)
		if d, err := n.Check(t.Context(), request("a")); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				if i%2 == 0 {
					if d, err := n.Check(t.Context(), request(distinct(i))); err != nil || !d.Allowed {
						t.Errorf("%+v, %v", d, err)
					}
					return
				}
				r, q := n.tenure.Rules(), request(distinct(i))
				if !n.Charge(t.Context(), r, r.Match(asked(q))[0], 1) {
					t.Errorf("charge %d is lost", i)
				}
			})
		}
		all.Wait()
	})
}
