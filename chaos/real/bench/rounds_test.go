package bench

import (
	"testing"
	"time"
)

func TestParseCalls(t *testing.T) {
	const stats = "calls=4711,usec=99,usec_per_call=0.02,rejected_calls=0"
	for text, want := range map[string]int64{stats: 4711, "calls=5": 5, "": 0} {
		if got, err := parseCalls(text); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	if _, err := parseCalls("calls=many,usec=1"); err == nil {
		t.Error("many calls are a number")
	}
}

// TestUntil: the processor time of others is that of the machine without that of our processes.
func TestUntil(t *testing.T) {
	began := time.Now()
	calls, more := int64(10), int64(25)
	objects, grown := 1000.0, 1750.0
	before := reading{at: began, machine: 100, judged: true, scripts: &calls, mallocs: &objects,
		processes: map[int]threads{1: {"1": 10}, 2: {"2": 20}, 3: {"3": 30}}}
	after := reading{at: began.Add(time.Second), machine: 200, judged: true, scripts: &more,
		mallocs:   &grown,
		processes: map[int]threads{1: {"1": 15}, 2: {"2": 50}, 3: {"3": 37}}}
	r := before.until(after, &subject{server: []int{2}, redis: []int{3}})
	if r.lasted != time.Second || *r.scripts != 15 || *r.server != 30 || *r.redis != 7 ||
		*r.mallocs != 750 || *r.others != 100-5-30-7 {
		t.Errorf("got %+v, server %v, Redis %v, others %v", r, *r.server, *r.redis, *r.others)
	}
	if floor := before.until(after, &subject{server: []int{2}}); floor.redis != nil {
		t.Errorf("a server without a Redis has one that ran %v", *floor.redis)
	}
	none := reading{at: began}.until(reading{at: began.Add(1)}, &subject{server: []int{2}})
	if none.server != nil || none.others != nil || none.scripts != nil ||
		none.mallocs != nil {
		t.Errorf("without an accounting: %+v", none)
	}
}
