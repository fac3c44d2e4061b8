package door

import (
	"fmt"
	"testing"
	"time"
)

const batchBytes, checkBytes = 3000, 60

// fill takes messages of a size in hand until one is refused.
func fill(w *Work, caller string, conns, bytes int) (all []*Held) {
	for refused := 0; refused < conns; {
		h := w.Take(caller, fmt.Sprintf("%s:%d", caller, (len(all)+refused)%conns), bytes)
		if h == nil {
			refused++
			continue
		}
		all, refused = append(all, h), 0
	}
	return all
}

func sum(all []*Held) (size int64) {
	for _, h := range all {
		size += h.size
	}
	return size
}

// A caller that floods, over however many connections, leaves room for small calls on another
// connection and for another caller's large calls.
func TestWorkIsShared(t *testing.T) {
	for _, conns := range []int{1, 4, 1000} {
		w := NewWork()
		flood := fill(w, "flood", conns, batchBytes)
		if size := sum(flood); size < w.most/4 || size > w.most*3/4 {
			t.Errorf("%d connections: %d of %d in hand", conns, size, w.most)
		}
		// at a time, behind the same host
		for i := range 5 {
			if h := w.Take("flood", "victim's", checkBytes); h == nil {
				t.Errorf("%d connections: small call %d was refused", conns, i)
			}
		}
		if h := w.Take("elsewhere", "elsewhere:1", batchBytes); conns < 1000 && h == nil {
			t.Errorf("%d connections: a batch of another caller was refused", conns)
		}
	}
}

// Callers that flood have about the same work in hand, and a caller with none finds room beside
// them.
func TestWorkOfManyCallers(t *testing.T) {
	w := NewWork()
	var each [4][]*Held
	for turn, let := 0, true; let; turn++ {
		let = false
		for i := range each {
			if h := w.Take(fmt.Sprint(i), fmt.Sprintf("%d:%d", i, turn%2), checkBytes); h != nil {
				each[i], let = append(each[i], h), true
			}
		}
	}
	for i := range each {
		if own := sum(each[i]); own < w.most/8 || own > w.most/3 {
			t.Errorf("caller %d has %d of %d in hand", i, own, w.most)
		}
	}
	if w.Take("victim", "victim:1", checkBytes) == nil {
		t.Error("a caller that has nothing in hand was refused")
	}
}

// The room of a call is free when the call is done, and is freed once. Nothing is kept of a caller
// with no work in hand.
func TestWorkIsGivenBack(t *testing.T) {
	w := NewWork()
	for range 3 {
		all := fill(w, "a", 3, batchBytes)
		all = append(all, fill(w, "b", 3, checkBytes)...)
		for _, h := range all {
			h.Done()
			h.Done()
		}
		if w.used != 0 || len(w.callers) != 0 || len(w.conns) != 0 {
			t.Fatalf("%+v", w)
		}
	}
	if h := w.Take("a", "a:1", 1<<20); h == nil || h.size != heaviestCall {
		t.Errorf("the largest message finds no room in an idle node: %+v", h)
	}
}

func BenchmarkWorkRefuses(b *testing.B) {
	w := NewWork()
	fill(w, "flood", 4, batchBytes)
	for b.Loop() {
		if w.Take("flood", "flood:1", batchBytes) != nil {
			b.Fatal("there is room")
		}
	}
}

// A machine that stood still for a moment is not behind. One whose calls wait again and again is,
// until they no longer do.
func TestBehind(t *testing.T) {
	w := NewWork()
	refused := func(calls int, waited time.Duration) (n int) {
		for range calls {
			if w.Behind(waited) {
				n++
			}
		}
		return n
	}
	if n := refused(3, 2*maxBehind); n != 0 {
		t.Errorf("after a moment's standstill %d of 3 calls were refused", n)
	}
	if n := refused(50, 2*maxBehind); n < 40 {
		t.Errorf("only %d of 50 calls that waited too long were refused", n)
	}
	if n := refused(50, 0) + refused(3, 2*maxBehind); n != 0 {
		t.Errorf("%d calls were refused after there was no wait for long", n)
	}
}
