package queue

import (
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/region/memory/store"
)

// TestSpanningTakesNothingBackOfADeletedBucket: a bucket of a charged part is deleted before
// another part denies. The refund does not create the bucket again, so the next request notices the
// deletion.
func TestSpanningTakesNothingBackOfADeletedBucket(t *testing.T) {
	shards := store.Divided(4)
	twin := lab.NewDividedTwin(now, "r", shards)
	s, _ := twin.ConnectWithin(time.Minute, time.Now)
	n := on(t, s, "name: per-account, limit: 10, window: 1h", "name: per-address, key: [address], limit: 5, window: 1h")
	n.opened(t)
	w := Ask{Rules: n.rules, Cost: 2, Commit: true}
	for i := 0; len(w.Parts()) < 2; i++ {
		w.Applied = n.rules.Match("api", map[string]string{"account": strconv.Itoa(i), "address": "10.0.0.1"})
	}
	p := w.Parts()[0]
	own := w.only(p).Waits(time.Now(), time.Minute)
	a, err := n.Decide(t.Context(), own)
	if err != nil || !a.Admitted() {
		t.Fatalf("%+v, %v", a, err)
	}
	twin.Delete(own.Applied[0].Target.Key)
	n.takeBack(t.Context(), n.chargesOf(own, p.Shard, a)[0])
	if again, err := n.Decide(t.Context(), own); err != nil || again.Lost() == nil {
		t.Errorf("%v, %v: want a lost bucket", again.Err, err)
	}
}
