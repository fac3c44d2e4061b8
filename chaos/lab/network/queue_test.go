package network

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestQueueAgainstSlice holds the queue against a plain slice whose dues are
// recomputed from scratch.
func TestQueueAgainstSlice(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		type item struct{ due, what int }
		var (
			q    queue[int]
			twin []item
			zero = time.Unix(0, 0)
			at   = func(i int) time.Time { return zero.Add(time.Duration(i)) }
			seq  int
		)
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				due := rapid.IntRange(0, 100).Draw(t, "due")
				q.push(at(due), seq)
				if len(twin) > 0 {
					due = max(due, twin[len(twin)-1].due)
				}
				twin = append(twin, item{due, seq})
				seq++
			},
			"pop": func(t *rapid.T) {
				now := rapid.IntRange(0, 100).Draw(t, "now")
				what, ok := q.pop(at(now))
				if want := len(twin) > 0 && twin[0].due <= now; ok != want {
					t.Fatalf("pop says %v, want %v", ok, want)
				}
				if ok {
					if what != twin[0].what {
						t.Fatalf("popped %d, want %d", what, twin[0].what)
					}
					twin = twin[1:]
				}
			},
			"postpone": func(t *rapid.T) {
				until := rapid.IntRange(0, 100).Draw(t, "until")
				q.postpone(at(until))
				for i := range twin {
					twin[i].due = max(twin[i].due, until)
				}
			},
			"": func(t *rapid.T) {
				due, ok := q.next()
				if q.len() != len(twin) || ok != (len(twin) > 0) {
					t.Fatalf("holds %d items, want %d", q.len(), len(twin))
				}
				if ok && !due.Equal(at(twin[0].due)) {
					t.Fatalf("next is due at %v, want %v", due, at(twin[0].due))
				}
			},
		})
	})
}
