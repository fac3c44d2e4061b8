package door

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// queueing is a Crowd before a server that answers calls in order, each takes so long.
type queueing struct {
	*Crowd
	now     time.Time
	each    time.Duration
	queue   []queued
	outside []queued
	next    time.Time // when the first of the queue is answered
	inTime  int
	late    int
	refused int
}

type queued struct{ *guest }

func newQueueing(each time.Duration) *queueing {
	return &queueing{Crowd: NewCrowd(nil, nil), now: time.Unix(1_800_000_000, 0), each: each}
}

// asks has a caller ask now, and reports whether the call was let in at once.
func (q *queueing) asks(caller string, waits time.Duration) bool {
	one := queued{&guest{waiter: waiter{caller: caller, came: q.now, until: q.now.Add(waits * 3 / 4)},
		ends: q.now.Add(waits)}}
	one.begun.Store(true)
	switch q.comes(one.guest, q.now) {
	case refused:
		q.refused++
	case isOutside:
		q.outside = append(q.outside, one)
	case isIn:
		q.serves(one)
		return true
	}
	return false
}

func (q *queueing) serves(one queued) {
	if len(q.queue) == 0 {
		q.next = q.now.Add(q.each)
	}
	q.queue = append(q.queue, one)
}

// looks serves those that were let in, and refuses those whose time is over.
func (q *queueing) looks() {
	rest := q.outside[:0]
	for _, one := range q.outside {
		switch {
		case one.place == isIn:
			q.serves(one)
		case !q.now.Before(one.until):
			q.givesUp(one.guest)
			q.refused++
		default:
			rest = append(rest, one)
		}
	}
	q.outside = rest
}

// passes lets time pass. A call whose time is over is not answered, and takes half as long.
func (q *queueing) passes(d time.Duration) {
	for until := q.now.Add(d); ; {
		q.looks()
		if len(q.queue) == 0 || q.next.After(until) {
			q.now = until
			return
		}
		first, answered := q.queue[0], !q.next.After(q.queue[0].ends)
		q.now, q.queue = q.next, q.queue[1:]
		q.leaves(first.guest, q.now, answered)
		if answered {
			q.inTime++
		} else {
			q.late++
		}
		if q.next = q.now.Add(q.each); len(q.queue) > 0 && q.queue[0].ends.Before(q.now) {
			q.next = q.now.Add(q.each / 2)
		}
	}
}

// floods offers calls at an even pace.
func (q *queueing) floods(waits, every, lasts time.Duration) {
	for end := q.now.Add(lasts); q.now.Before(end); q.passes(every) {
		q.asks("flood", waits)
	}
}

// TestACrowdIsDecidedInTime: at several times what a node can answer, nearly as many are answered in
// time as it can, and hardly any is begun in vain. Without a Crowd none is answered in time.
func TestACrowdIsDecidedInTime(t *testing.T) {
	for _, waits := range []time.Duration{20 * time.Millisecond, 50 * time.Millisecond, time.Second} {
		for _, times := range []time.Duration{2, 5} {
			q := newQueueing(60 * time.Microsecond)
			q.floods(waits, q.each/times, time.Second)
			q.inTime, q.late, q.refused = 0, 0, 0
			q.floods(waits, q.each/times, time.Second)
			if can := int(time.Second / q.each); q.inTime < can*95/100 || q.late > can/50 {
				t.Errorf("waiting for %v, %d times: %d of %d in time, %d late, %d refused", waits, times,
					q.inTime, can, q.late, q.refused)
			}
		}
	}
}

// TestNobodyIsRefusedWhoCanBeAnswered: below what a node can answer, in bursts too, nobody is
// refused, whatever the node was offered before.
func TestNobodyIsRefusedWhoCanBeAnswered(t *testing.T) {
	q := newQueueing(60 * time.Microsecond)
	q.floods(20*time.Millisecond, q.each/5, time.Second)
	q.passes(time.Second)
	q.refused = 0
	for range 20 {
		for range 200 { // together they take 12 ms
			q.asks("burst", 50*time.Millisecond)
		}
		q.passes(50 * time.Millisecond)
	}
	for range 10_000 {
		q.asks("steady", 20*time.Millisecond)
		q.passes(q.each * 11 / 10)
	}
	if q.refused > 0 {
		t.Errorf("%d are refused", q.refused)
	}
}

// TestAFloodLeavesRoomInACrowd: a caller that asks little is let in beside one that floods, and so
// is one that names much time.
func TestAFloodLeavesRoomInACrowd(t *testing.T) {
	q := newQueueing(60 * time.Microsecond)
	for i := range 100_000 {
		q.asks("flood", 20*time.Millisecond)
		q.passes(q.each / 5)
		if i%100 == 0 && !q.asks("victim", 20*time.Millisecond) {
			t.Fatalf("the victim is refused at %d, beside %d of %d", i, q.callers["flood"], q.in)
		}
		if i%1000 == 0 && !q.asks("flood", 10*time.Second) {
			t.Fatalf("a patient call is refused at %d", i)
		}
	}
	if q.refused == 0 {
		t.Error("the flood is not refused")
	}
}

// comesAgain has callers ask, each again a millisecond after it was refused, or at once after any
// other end. It costs each/7 of the server's time to refuse a call, and each/4 if it was outside.
func (q *queueing) comesAgain(callers int, waits, lasts time.Duration) {
	for end := q.now.Add(lasts); q.now.Before(end); q.passes(time.Millisecond) {
		for range callers - len(q.queue) - len(q.outside) {
			before := q.refused
			if q.asks("again", waits); q.refused > before {
				q.next = q.next.Add(q.each / 7)
			}
		}
		before := q.refused
		q.looks()
		q.next = q.next.Add(time.Duration(q.refused-before) * q.each / 4)
	}
}

// TestCallersWhoComeAgain: callers who come again as soon as they are refused do not take the time
// of those who can be answered. However many come, only so many wait outside.
func TestCallersWhoComeAgain(t *testing.T) {
	q := newQueueing(60 * time.Microsecond)
	q.comesAgain(256, 20*time.Millisecond, time.Second)
	q.inTime, q.late, q.refused = 0, 0, 0
	q.comesAgain(256, 20*time.Millisecond, 4*time.Second)
	if can := int(4 * time.Second / q.each); q.inTime < can*7/10 || q.late > can/20 {
		t.Errorf("%d of %d in time, %d late, %d refused", q.inTime, can, q.late, q.refused)
	}
	q.comesAgain(1200, 50*time.Millisecond, 2*time.Second)
	q.inTime = 0
	q.comesAgain(1200, 50*time.Millisecond, 2*time.Second)
	if can := int(2 * time.Second / q.each); q.inTime < can*2/5 {
		t.Errorf("%d of %d in time of many callers", q.inTime, can)
	}
	line := q.Crowd.outside.callers["again"]
	if waiting := q.Crowd.outside.waiting; len(q.Crowd.outside.order) > 1 || len(q.callers) != 1 ||
		waiting == 0 || waiting > maxOutside || len(line.all) > 2*maxOutside {
		t.Errorf("%d lines, %d callers, %d outside of %d kept", len(q.Crowd.outside.order), len(q.callers), waiting, len(line.all))
	}
}

// TestWhoIsLetInFirst: of those that wait outside, callers take turns. Each caller's first goes
// first, or its newest once the first has waited long.
func TestWhoIsLetInFirst(t *testing.T) {
	q := newQueueing(time.Millisecond)
	for range alwaysIn {
		q.asks("in", time.Second)
	}
	q.pace, q.paced, q.storm = 50, q.now.Add(time.Hour), q.now.Add(time.Hour)
	var names []string
	of := map[*guest]string{}
	come := func(caller, name string) {
		if q.asks(caller, 50*time.Millisecond) {
			t.Fatalf("%s is let in at once", name)
		}
		line := q.Crowd.outside.callers[caller].all
		of[line[len(line)-1]] = name
	}
	lets := func(n int) {
		for range n {
			q.leaves(q.queue[0].guest, q.now, true)
			q.queue = q.queue[1:]
			for _, one := range q.outside {
				if one.place == isIn && of[one.guest] != "" {
					names = append(names, of[one.guest])
					delete(of, one.guest)
				}
			}
		}
	}
	for _, name := range []string{"a1", "a2", "a3", "a4", "b1", "b2"} {
		come(name[:1], name)
	}
	lets(3)
	q.now = q.now.Add(20 * time.Millisecond)
	lets(3)
	if got, want := strings.Join(names, " "), "a1 b1 a2 b2 a4 a3"; got != want {
		t.Errorf("let in: %s, want %s", got, want)
	}
	if q.Crowd.outside.waiting != 0 || len(q.Crowd.outside.order) != 0 {
		t.Errorf("%d are outside, in %d lines", q.Crowd.outside.waiting, len(q.Crowd.outside.order))
	}
}

// TestASlowStoreEndsInNoCrowd: when the store stood still and answers again, the pace of before is
// forgotten.
func TestASlowStoreEndsInNoCrowd(t *testing.T) {
	q := newQueueing(60 * time.Microsecond)
	q.each = 30 * time.Millisecond
	q.floods(100*time.Millisecond, time.Millisecond, 3*time.Second)
	q.each = 60 * time.Microsecond
	q.passes(3 * time.Second)
	q.refused = 0
	for range 200 {
		q.asks("after", 50*time.Millisecond)
	}
	if q.refused > 0 {
		t.Errorf("%d of 200 are refused", q.refused)
	}
}

// TestWhoNeverEntersLeaves: calls that gRPC ends before their handlers begin leave the crowd, and so
// do all others.
func TestWhoNeverEntersLeaves(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		hold := make(chan struct{})
		h.check = func() (*healthv1.HealthCheckResponse, error) {
			<-hold
			return &healthv1.HealthCheckResponse{}, nil
		}
		r := h.rude("client", 1<<16)
		defer r.done()
		id := uint32(1)
		for _, fields := range [][]hpack.HeaderField{
			{{Name: "grpc-timeout", Value: "1n"}},
			{{Name: "grpc-timeout", Value: "1S"}, {Name: "grpc-encoding", Value: "unheard-of"}},
			{{Name: "grpc-timeout", Value: "1S"}}, // its message does not come
			{{Name: "grpc-timeout", Value: "0S"}},
		} {
			r.begin(id, checkPath, fields...)
			id += 2
		}
		var all sync.WaitGroup
		client := healthv1.NewHealthClient(h.client("client"))
		for range 3 {
			all.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}); status.Code(err) !=
					codes.DeadlineExceeded {
					t.Error(err)
				}
			})
		}
		all.Wait()
		h.crowd.mu.Lock()
		if h.crowd.in < 3 {
			t.Errorf("%d are in, of which 3 have handlers", h.crowd.in)
		}
		h.crowd.mu.Unlock()
		close(hold)
		rest(2 * neverBegins)
		h.crowd.mu.Lock()
		defer h.crowd.mu.Unlock()
		h.crowd.look(time.Now())
		if h.crowd.in != 0 || len(h.crowd.callers) != 0 {
			t.Errorf("%d are in, of %v", h.crowd.in, h.crowd.callers)
		}
	})
}

// TestARefusedCrowdHoldsNothing: calls that are refused with their headers, or outside in a storm
// just before their callers give up, are not counted as held by their connection, which would stop
// being read.
func TestARefusedCrowdHoldsNothing(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		h.crowd.pace, h.crowd.paced, h.crowd.in = 1, time.Now().Add(time.Hour), alwaysIn
		client := healthv1.NewHealthClient(h.client("client"))
		for i := range 2000 {
			waits := time.Duration(0)
			if i == 1000 {
				h.crowd.storm = time.Now().Add(time.Hour)
			}
			if i >= 1000 {
				waits = 95 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			begun := time.Now()
			if _, err := client.Check(ctx, &healthv1.HealthCheckRequest{}); status.Code(err) !=
				codes.Unavailable || time.Since(begun).Round(time.Millisecond) != waits {
				t.Fatal(err, time.Since(begun))
			}
			cancel()
		}
		if held := h.door.metric("quotad_connections_held_bytes", ""); held > 8<<10 {
			t.Errorf("%v bytes are counted as held after 2,000 refused calls", held)
		}
		h.crowd.mu.Lock()
		defer h.crowd.mu.Unlock()
		if h.crowd.outside.waiting != 0 || len(h.crowd.callers) != 0 {
			t.Errorf("%d are outside, of %v", h.crowd.outside.waiting, h.crowd.callers)
		}
	})
}
