package client_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/client"
)

// holding returns a bucket that holds about so many units of a fake node: as many as it was used
// for just before.
func holding(t testing.TB, c *client.Client, units int64) *client.Bucket {
	t.Helper()
	b := c.Bucket("api", account)
	if d := allow(t, b, units); d.FromMemory || !d.Allowed {
		t.Fatalf("the first request: %+v", d)
	}
	return b
}

// Units are spent until spend_within has passed since before they were asked for, and for a second
// at most, whatever the node says.
func TestUnitsAreSpentInTime(t *testing.T) {
	for name, tc := range map[string]struct{ delay, within, spent time.Duration }{
		"a cell that ends": {50 * time.Millisecond, 200 * time.Millisecond,
			200 * time.Millisecond},
		"a long cell":                  {0, time.Second, time.Second},
		"a slow answer":                {400 * time.Millisecond, time.Second, time.Second},
		"a node that promises more":    {0, time.Hour, time.Second},
		"a slow answer, too late":      {300 * time.Millisecond, 200 * time.Millisecond, 0},
		"a node that promises nothing": {0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(1 << 40)
				f.delay, f.within = tc.delay, tc.within
				c := client.New(f, client.Options{Prefetch: true})
				b := holding(t, c, 1000)
				synctest.Wait()
				took := f.tookAt[0]
				time.Sleep(tc.delay)
				synctest.Wait()
				for tc.spent > tc.delay && time.Since(took) < tc.spent {
					if d := allow(t, b, 1); !d.Allowed || !d.FromMemory {
						t.Fatalf("%v after units were asked for: %+v", time.Since(took), d)
					}
					time.Sleep(min(10*time.Millisecond, tc.spent-time.Since(took)))
				}
				if d := allow(t, b, 1); d.FromMemory {
					t.Errorf("%v after units were asked for one is spent", time.Since(took))
				}
				closed(t, c)
				if len(f.wrong) > 0 {
					t.Error(f.wrong)
				}
			})
		})
	}
}

// Units that are not spent go back once they may not be spent any more, without a further request.
func TestIdleUnitsGoBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(1 << 40)
		c := client.New(f, client.Options{Prefetch: true})
		b := holding(t, c, 1000)
		synctest.Wait()
		for range 10 {
			allow(t, b, 3)
		}
		time.Sleep(1200 * time.Millisecond)
		if s := wantSettled(t, c); s.Taken != 1000 || s.Admitted != 30 || s.Returned != 970 ||
			s.Holding != 0 {
			t.Errorf("%+v", s)
		}
		if f.free != 1<<40-1030 || len(f.wrong) > 0 {
			t.Errorf("the node has %d units, %v", f.free, f.wrong)
		}
		closed(t, c)
	})
}

// Who waits longer for a Check waits as long for units: a node has charged those whose answer the
// client did not wait for.
func TestUnitsOfASlowNode(t *testing.T) {
	for timeout, lost := range map[time.Duration]int64{0: 1000, 2 * time.Second: 0} {
		t.Run(timeout.String(), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(1 << 40)
				f.delays(600 * time.Millisecond)
				c := client.New(f, client.Options{Prefetch: true, Timeout: timeout})
				holding(t, c, 1000)
				time.Sleep(3 * time.Second)
				_ = c.Close()
				wantSettled(t, c)
				if f.free != 1<<40-1000-lost || len(f.wrong) > 0 {
					t.Errorf("the node has %d units, %v; want %d lost", f.free, f.wrong, lost)
				}
			})
		})
	}
}

// Whatever requests and ends coincide, each unit is admitted once or goes back once: the node has
// at the end what it had less what was admitted.
func TestEachUnitCountsOnce(t *testing.T) {
	const units = 200_000
	f := newFake(units)
	f.within = 2 * time.Millisecond
	var admitted atomic.Int64
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			c := client.New(f, client.Options{Prefetch: true})
			b := c.Bucket("api", account)
			var callers sync.WaitGroup
			for n := range 4 {
				callers.Go(func() {
					for i := range 10_000 {
						if cost := int64(1 + (i+n)%7); allow(t, b, cost).Allowed {
							admitted.Add(cost)
						}
					}
				})
			}
			callers.Go(func() { // while others still ask
				time.Sleep(5 * time.Millisecond)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
			callers.Wait()
			wantSettled(t, c)
		})
	}
	all.Wait()
	if f.free+admitted.Load() != units || len(f.wrong) > 0 {
		t.Errorf("%d admitted and %d left of %d; %v", admitted.Load(), f.free, units, f.wrong)
	}
}

// A bucket asks for what it used in 100 ms, and asks again before its units are spent.
func TestUnitsAreTakenEarly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(1 << 40)
		f.delay = 5 * time.Millisecond
		c := client.New(f, client.Options{Prefetch: true})
		b := c.Bucket("api", account)
		asked := 0
		for n := range 3000 { // 1 in a millisecond
			if d := allow(t, b, 1); n > 1000 && !d.FromMemory {
				asked++
			}
			time.Sleep(time.Millisecond)
		}
		if asked > 0 {
			t.Errorf("%d requests at a steady pace were asked about", asked)
		}
		s := closed(t, c)                               // no call is under way after it
		for _, m := range f.takes[5 : len(f.takes)-1] { // the last one gives back
			if m.Units < 50 || m.Units > 150 {
				t.Errorf("%d units were asked for, where some 100 are used in 100 ms", m.Units)
			}
		}
		if n := len(f.takes); n < 20 || n > 60 {
			t.Errorf("%d calls in 3 s", n)
		}
		var told int64
		for _, m := range f.takes {
			told += m.Admitted
		}
		if told > s.Admitted || told < s.Admitted-200 {
			t.Errorf("%d units were admitted from memory, %d reported", s.Admitted, told)
		}
	})
}

// Where an exact limit applies, or the node gives no units to clients, each request is asked about,
// and the next try comes after 10 s.
func TestExactLimits(t *testing.T) {
	for _, code := range []codes.Code{codes.FailedPrecondition, codes.Unimplemented} {
		bubble.Test(t, func(t *testing.T) {
			f := newFake(1 << 40)
			f.takeError = status.Error(code, "no")
			c := client.New(f, client.Options{Prefetch: true})
			b := holding(t, c, 1000)
			synctest.Wait()
			f.free = 0
			const requests = 990
			for range requests {
				time.Sleep(10 * time.Millisecond)
				if d := allow(t, b, 100); d.FromMemory {
					t.Fatal("decided from memory")
				}
			}
			if checks, takes := f.count(); checks != requests+1 || takes != 1 {
				t.Errorf("%v: %d checks, %d takes", code, checks, takes)
			}
			f.free = 1 << 40
			time.Sleep(time.Second)
			allow(t, b, 1000)
			synctest.Wait()
			if _, takes := f.count(); takes != 2 {
				t.Errorf("%v: %d takes after 10 s", code, takes)
			}
			if s := closed(t, c); s.Exact != 2 || s.Failed != 0 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// A node that gives no units, or cannot, is asked for some again after 100 ms.
func TestUnitsAreRefused(t *testing.T) {
	for _, err := range []error{nil, status.Error(codes.ResourceExhausted, "busy")} {
		bubble.Test(t, func(t *testing.T) {
			f := newFake(1 << 40)
			f.takeError, f.givesNone = err, true
			c := client.New(f, client.Options{Prefetch: true})
			b := c.Bucket("api", account)
			for range 500 {
				if d := allow(t, b, 2); d.FromMemory {
					t.Fatal("decided from memory")
				}
				time.Sleep(time.Millisecond)
			}
			if _, takes := f.count(); takes < 4 || takes > 6 {
				t.Errorf("%v: %d takes in 500 ms", err, takes)
			}
			closed(t, c)
		})
	}
}

// Close takes bounded time, and says what was not given back, also if the client was about to give
// it back.
func TestCloseIsBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		idle time.Duration // before Close
		says string
	}{
		"at once":             {0, "100000 units"},
		"while units go back": {1150 * time.Millisecond, ""},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				f := newFake(1 << 40)
				c := client.New(f, client.Options{Prefetch: true})
				for range 100 {
					holding(t, c, 1000)
				}
				synctest.Wait()
				f.delays(time.Hour)
				time.Sleep(tc.idle)
				late := c.Bucket("api", account)
				allow(t, late, 1000) // its units are asked for, and no answer comes
				synctest.Wait()
				begun := time.Now()
				err := c.Close()
				if took := time.Since(begun); took > 3*time.Second {
					t.Errorf("Close took %v", took)
				}
				if told := err != nil && strings.Contains(err.Error(), tc.says); told == (tc.says == "") {
					t.Errorf("Close: %v", err)
				}
				if s := wantSettled(t, c); s.Lost != 100_000 {
					t.Errorf("%+v", s)
				}
				if err := c.Close(); err != nil {
					t.Errorf("the second Close: %v", err)
				}
				if d := allow(t, late, 1); d.FromMemory {
					t.Error("decided from memory after Close")
				}
			})
		})
	}
}

// A cost that is none is refused, and gives nothing back to the client's units.
func TestWrongCosts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(1 << 40)
		c := client.New(f, client.Options{Prefetch: true})
		b := holding(t, c, 1000)
		synctest.Wait()
		for _, cost := range []int64{0, -1, -1 << 62} {
			d, err := b.Allow(t.Context(), cost)
			if status.Code(err) != codes.InvalidArgument || d.Allowed {
				t.Errorf("cost %d: %+v, %v", cost, d, err)
			}
		}
		if s := closed(t, c); s.Admitted != 0 || s.Returned != 1000 {
			t.Errorf("%+v", s)
		}
	})
}

// Without Prefetch each request is asked about, and nothing is taken.
func TestPlain(t *testing.T) {
	f := newFake(10_000)
	c := client.New(f, client.Options{})
	b := c.Bucket("api", account)
	for range 1000 {
		if d := allow(t, b, 20); d.FromMemory {
			t.Fatal("decided from memory")
		}
	}
	if checks, takes := f.count(); checks != 1000 || takes != 0 {
		t.Errorf("%d checks, %d takes", checks, takes)
	}
	if s := closed(t, c); s != (client.Stats{Asked: 1000}) {
		t.Errorf("%+v", s)
	}
}

// The error of a call is the node's gRPC status.
func TestErrors(t *testing.T) {
	f := newFake(0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := client.New(refusing{f}, client.Options{})
	_, err := c.Check(ctx, client.Request{Domain: "api"})
	if status.Code(err) != codes.InvalidArgument || errors.Unwrap(err) == nil {
		t.Errorf("%v", err)
	}
}
