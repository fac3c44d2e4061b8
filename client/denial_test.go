package client_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/client"
)

// A denial is remembered until its retry time, which shrinks, and one request in 100 ms is asked
// about. What is denied from memory is reported.
func TestDenialsAreRemembered(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(3)
		f.retry = 2 * time.Second
		c := client.New(f, client.Options{Prefetch: true})
		b := c.Bucket("api", account)
		if d := allow(t, b, 5); d.Allowed || d.FromMemory {
			t.Fatalf("the first request: %+v", d)
		}
		f.retry = time.Hour // of answers to come
		begun, fromMemory := time.Now(), int64(0)
		for n := range 95 {
			d := allow(t, b, 5)
			left := 2*time.Second - time.Since(begun)
			if d.Allowed || !d.FromMemory || d.RetryAfter != left || d.Limit != "account" ||
				d.Reason != quotadv1.Reason_REASON_OVER_LIMIT {
				t.Fatalf("request %d: %+v, want retry after %v", n, d, left)
			}
			fromMemory++
			time.Sleep(time.Millisecond)
		}
		// A smaller cost may fit.
		if d := allow(t, b, 3); !d.Allowed || d.FromMemory {
			t.Errorf("a smaller cost: %+v", d)
		}
		for range 1000 {
			if d := allow(t, b, 5); d.FromMemory {
				fromMemory++
			}
			time.Sleep(time.Millisecond)
		}
		if checks, _ := f.count(); checks < 11 || checks > 13 {
			t.Errorf("%d requests were asked about in 1.1 s", checks)
		}
		closed(t, c)
		if told := f.denied(); told != 5*fromMemory {
			t.Errorf("%d units denied from memory, %d reported", 5*fromMemory, told)
		}
		if _, takes := f.count(); takes < 5 || takes > 7 {
			t.Errorf("%d reports in 1.1 s", takes)
		}
	})
}

// A denial is forgotten at its retry time, and when a request that was asked about is admitted.
func TestDenialsEnd(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(0)
		f.retry = 50 * time.Millisecond
		c := client.New(f, client.Options{Prefetch: true})
		b := c.Bucket("api", account)
		allow(t, b, 1)
		time.Sleep(49 * time.Millisecond)
		if d := allow(t, b, 1); !d.FromMemory {
			t.Errorf("before its retry time: %+v", d)
		}
		f.free = 1000
		time.Sleep(time.Millisecond)
		if d := allow(t, b, 1); d.FromMemory || !d.Allowed {
			t.Errorf("at its retry time: %+v", d)
		}
		f.free, f.retry = 0, time.Hour
		allow(t, b, 1)
		f.free = 1000
		time.Sleep(100 * time.Millisecond)
		for n := range 3 {
			if d := allow(t, b, 1); !d.Allowed {
				t.Errorf("request %d after units came back: %+v", n, d)
			}
		}
		closed(t, c)
	})
}

// A cost that the region can never admit is asked about, because the node says so.
func TestImpossibleCosts(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(0)
		c := client.New(f, client.Options{Prefetch: true})
		b := c.Bucket("api", account)
		allow(t, b, 1)
		if d := allow(t, b, 1<<50+1); d.FromMemory {
			t.Errorf("%+v", d)
		}
		closed(t, c)
	})
}

// The buckets of which a client holds something are bounded. About the others it asks, and each of
// them finds a place when another one holds nothing any more.
func TestHoldersAreBounded(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		f := newFake(0)
		c := client.New(f, client.Options{Prefetch: true})
		const more = 10
		for n := range client.MaxHolders + more {
			b := c.Bucket("api", map[string]string{"account": fmt.Sprint(n)})
			allow(t, b, 1)
			allow(t, b, 1)
		}
		if s := c.Stats(); s.Holding != client.MaxHolders || s.Crowded != more {
			t.Errorf("%+v", s)
		}
		f.free = 1 << 40
		crowded := c.Bucket("api", account)
		if d := allow(t, crowded, 1000); !d.Allowed {
			t.Errorf("%+v", d)
		}
		synctest.Wait()
		if s := c.Stats(); s.Taken != 0 || s.Crowded != more+1 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second) // all is reported
		if s := c.Stats(); s.Holding != 0 {
			t.Errorf("%+v", s)
		}
		allow(t, crowded, 1000)
		synctest.Wait()
		if s := c.Stats(); s.Taken != 1000 {
			t.Errorf("%+v", s)
		}
		closed(t, c)
	})
}
