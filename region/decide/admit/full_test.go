package admit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/queue"
)

// fill has the queue hold all that it may, all of one bucket.
func (n *Limiter) fill(t testing.TB, q Request) {
	t.Helper()
	r := n.tenure.Rules()
	gone, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for the answers
	w := queue.Ask{Rules: r, Applied: r.Match(q.Domain, q.Descriptors), Cost: 1, Commit: true}.Waits(time.Now(), 24*time.Hour)
	for {
		_, errs := n.queue.DecideAll(gone, slices.Repeat([]queue.Ask{w}, 1000))
		if slices.ContainsFunc(errs, queue.IsOverload) {
			return
		}
	}
}

func TestQueueFull(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: minute, limit: 100, window: 1m"))
	n.fill(t, request("a"))
	before := n.queue.Load()
	var full *queue.Overload
	if d, err := n.Check(t.Context(), request("a")); !errors.As(err, &full) || full.Retry <= 0 {
		t.Errorf("decision %+v, %v", d, err)
	}
	all, err := n.CheckBatch(t.Context(), []Request{request("a")})
	if d := append(all, Decision{})[0]; err != nil || d.Allowed || !d.Undecided || d.Reason != QueueFull || d.Limit != "minute" ||
		d.Entitlement != 40 || d.Sequence != 1 || d.RetryAfter <= 0 {
		t.Errorf("in a batch: %+v, %v", d, err)
	}
	if l := n.queue.Load(); l.Queued != before.Queued || l.Refused.Full != before.Refused.Full+2 {
		t.Errorf("%+v, before %+v", l, before)
	}
	if d, err := n.Check(t.Context(), Request{Domain: "other", Cost: 1}); err != nil || !d.Allowed ||
		d.Reason != NoLimit {
		t.Errorf("a request that needs no store: %+v, %v", d, err)
	}
	var field *invalid.Field
	if _, err = n.Check(t.Context(), Request{Domain: "api"}); !errors.As(err, &field) {
		t.Errorf("a wrong request: %v", err)
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
			"name: minute, limit: 100, window: 1m"))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := n.Check(ctx, request("a"))
			done <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// A full queue denies nothing that only shadow limits apply to.
func TestQueueFullOfAShadowLimit(t *testing.T) {
	n := unstarted(t, 1, documents.Parse(t, 1, hereAndThere,
		"name: watch, limit: 10, window: 1s, shadow: true"))
	n.fill(t, request("a"))
	if d, err := n.Check(t.Context(), request("a")); err != nil || !d.Allowed {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestRequestsOfTooManyLimits: a request to which more limits apply than one script decides at a
// time is refused.
func TestRequestsOfTooManyLimits(t *testing.T) {
	var limits []string
	for i := range algorithms.MaxLoad + 1 {
		limits = append(limits, fmt.Sprintf("name: l%d, limit: 100, window: 1m", i))
	}
	for n, most := range map[int]bool{len(limits): true, len(limits) - 1: false} {
		c := unstarted(t, 1, documents.Parse(t, 1, hereAndThere, limits[:n]...))
		err := bounded(c.tenure.Rules().Match(asked(request("a"))))
		var field *invalid.Field
		if errors.As(err, &field) != most {
			t.Errorf("%d limits: %v", n, err)
		}
	}
}
