package bench

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func TestPercentile(t *testing.T) {
	thousand := make([]time.Duration, 1000)
	for i := range thousand {
		thousand[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		times []time.Duration
		part  float64
		want  time.Duration
	}{
		{nil, 0.5, 0},
		{thousand[:1], 0.5, 1},
		{thousand[:1], 0.999, 1},
		{thousand[:2], 0.5, 1},
		{thousand[:3], 0.5, 2},
		{thousand[:10], 0.99, 10},
		{thousand, 0.5, 500},
		{thousand, 0.99, 990},
		{thousand, 0.999, 999},
		{thousand, 1, 1000},
		{thousand, 0, 1},
	} {
		if got := percentile(c.times, c.part); got != c.want {
			t.Errorf("%v of %d times is %d, want %d", c.part, len(c.times), got, c.want)
		}
	}
}

func TestMedian(t *testing.T) {
	if got := median(nil); got != nil {
		t.Errorf("of nothing: %v", *got)
	}
	for _, c := range []struct {
		all  []float64
		want float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1}, 5},
		{[]float64{9, 1, 2}, 2},
		{[]float64{4, 1, 100, 2}, 3},
	} {
		if got := median(c.all); got == nil || *got != c.want {
			t.Errorf("of %v: %v, want %v", c.all, got, c.want)
		}
	}
}

// ran returns a round in which so many calls of 1 ms took the given processor times, in
// microseconds; 0: not known.
func ran(calls int, server, redis time.Duration, scripts int64) round {
	r := round{lasted: time.Second}
	for range calls {
		r.note(counting, 1, time.Millisecond, 0, nil)
	}
	if server > 0 {
		server *= time.Microsecond
		r.server = &server
	}
	if redis > 0 {
		redis *= time.Microsecond
		r.redis = &redis
	}
	if scripts > 0 {
		r.scripts = &scripts
	}
	return r
}

func TestFigures(t *testing.T) {
	floor := []round{ran(100, 1000, 0, 0), ran(200, 2000, 0, 0), ran(50, 1000, 0, 0)}
	s := &subject{name: "quotad", hasRedis: true,
		rounds: []round{ran(10, 400, 100, 5), ran(20, 800, 400, 20), ran(10, 600, 200, 1)}}
	f := figuresOf(s, floor)
	// Of the rounds: server 40, 40, 60; Redis 10, 20, 20; the floor 10, 10, 20 us.
	for name, got := range map[string]struct {
		is   *float64
		want float64
	}{
		"p50": {f.P50, 1000}, "p99.9": {f.P999, 1000}, "server": {f.ServerCPU, 40},
		"redis": {f.RedisCPU, 20}, "scripts": {f.Scripts, 0.5}, "times": {f.TimesFloor, 5},
		"a second": {&f.PerSecond, 10},
	} {
		if got.is == nil || *got.is != got.want {
			t.Errorf("%s: %v, want %v", name, got.is, got.want)
		}
	}
	if f.Decided != 40 || f.problem() != "" {
		t.Errorf("%d decided, %s", f.Decided, f.problem())
	}
	if f := figuresOf(&subject{rounds: floor}, floor); *f.TimesFloor != 1 || f.RedisCPU != nil {
		t.Errorf("the floor costs %v times itself, and its Redis %v", *f.TimesFloor, f.RedisCPU)
	}
	half := &subject{hasRedis: true, rounds: []round{ran(10, 400, 0, 0)}}
	if f := figuresOf(half, floor); f.TimesFloor != nil || f.Scripts != nil || f.ServerCPU == nil {
		t.Errorf("without the Redis: %+v", f)
	}
	if f := figuresOf(&subject{rounds: []round{{lasted: 1}}}, floor); f.P50 != nil ||
		f.problem() == "" {
		t.Errorf("of nothing: %+v", f)
	}
}

// TestProblem: up to 1 % of the requests may fail or be denied.
func TestProblem(t *testing.T) {
	for _, c := range []struct {
		failed, denied int
		want           bool
	}{{0, 0, false}, {5, 5, false}, {5, 6, true}, {0, 11, true}, {1000, 0, true}} {
		r := ran(1000-c.failed-c.denied, 1, 1, 1)
		for range c.failed {
			r.note(over, 1, time.Second, 0, errors.New("it did not answer"))
		}
		for range c.denied {
			r.note(counting, 1, time.Millisecond, 1, nil)
		}
		f := figuresOf(&subject{name: "lean", rounds: []round{r}}, nil)
		if got := f.problem(); (got != "") != c.want {
			t.Errorf("%+v: %q", c, got)
		}
	}
}

// TestWhyNotAnswered: what the server had no time for, what came too late, and what failed count apart.
func TestWhyNotAnswered(t *testing.T) {
	shed, err := status.New(codes.Unavailable, "no time").WithDetails(&errdetails.RetryInfo{})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		err  error
		want tally
	}{
		"refused":         {shed.Err(), tally{refused: 1}},
		"of a batch":      {errUndecided, tally{refused: 1}},
		"late":            {status.Error(codes.DeadlineExceeded, "late"), tally{late: 1}},
		"late over HTTP":  {fmt.Errorf("post: %w", context.DeadlineExceeded), tally{late: 1}},
		"nobody is there": {status.Error(codes.Unavailable, "connection refused"), tally{failed: 1}},
		"another one":     {errors.New("bad"), tally{failed: 1}},
	} {
		var got tally
		got.note(counting, 1, time.Second, 0, c.err)
		if got.refused != c.want.refused || got.late != c.want.late || got.failed != c.want.failed {
			t.Errorf("%s: %d refused, %d late, %d failed", name, got.refused, got.late, got.failed)
		}
	}
}

// TestNote: calls count while the phase is counting, failures and denials from then on.
func TestNote(t *testing.T) {
	var seen tally
	bad := errors.New("bad")
	seen.note(warmingUp, 10, 1, 3, nil)
	seen.note(warmingUp, 10, 1, 0, bad)
	seen.note(counting, 10, 2, 1, nil)
	seen.note(counting, 10, 2, 0, bad)
	seen.note(over, 10, 3, 2, nil)
	var all tally
	all.add(&seen)
	all.add(&tally{took: []time.Duration{7}, decided: 1, asked: 1, first: errors.New("later")})
	if len(all.took) != 2 || all.decided != 11 || all.asked != 31 || all.failed != 10 ||
		all.denied != 3 || !errors.Is(all.first, bad) {
		t.Errorf("got %+v", all)
	}
}
