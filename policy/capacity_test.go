package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// capacityDocument has one limit. It gives no burst if burst is 0.
func capacityDocument(a Algorithm, limit, burst quantity.Units, window time.Duration) string {
	text := fmt.Sprintf("version: 1\nregions: {eu: {weight: 1}}\nlimits:\n"+
		"- {name: a, domain: api, key: [k], algorithm: %s, limit: %d, window: %s", a, limit, window)
	if burst > 0 {
		text += fmt.Sprintf(", burst: %d", burst)
	}
	return text + "}\n"
}

func TestBurst(t *testing.T) {
	for _, c := range []struct {
		algorithm           Algorithm
		limit, given, burst quantity.Units
	}{
		{FixedWindow, 10, 0, 0},
		{SlidingWindowCounter, 10, 0, 0},
		{SlidingWindowLog, 10, 0, 0},
		{TokenBucket, 10, 0, 10},
		{LeakyBucket, 10, 0, 10},
		{TokenBucket, 10, 1, 1},
		{LeakyBucket, 10, 1, 1},
		{TokenBucket, 10, 1_000, 1_000},
		{LeakyBucket, 1, 1_000_000, 1_000_000},
	} {
		l := mustParse(t, capacityDocument(c.algorithm, c.limit, c.given, time.Minute)).Limits[0]
		if l.Limit != c.limit || l.Burst != c.burst {
			t.Errorf("%s of %d with burst %d: limit %d and burst %d, want burst %d", c.algorithm,
				c.limit, c.given, l.Limit, l.Burst, c.burst)
		}
	}
}

// TestLargestUnits checks limit and burst on either side of the bound. For units that are
// multiplied by time, the ticks they are counted in give the bound.
func TestLargestUnits(t *testing.T) {
	const day = 24 * time.Hour
	in := func(ticks int64) quantity.Units { return quantity.Units(MaxLimit/ticks - 1) }
	for _, c := range []struct {
		algorithm Algorithm
		window    time.Duration
		most      quantity.Units
	}{
		{FixedWindow, MinWindow, MaxLimit},
		{FixedWindow, MaxWindow, MaxLimit},
		{SlidingWindowLog, MinWindow, MaxLogLimit},
		{SlidingWindowLog, MaxWindow, MaxLogLimit},
		{SlidingWindowCounter, MinWindow, in(1000)},
		{SlidingWindowCounter, time.Second, in(1000)},
		{SlidingWindowCounter, time.Minute, in(6000)},
		{SlidingWindowCounter, time.Hour, in(3600)},
		{SlidingWindowCounter, day, in(86_400)},
		{SlidingWindowCounter, MaxWindow, in(366 * 86_400)},
		{TokenBucket, time.Second, in(1000)},
		{TokenBucket, time.Minute, in(6000)},
		{TokenBucket, MaxWindow, in(366 * 86_400)},
		{LeakyBucket, time.Second, in(1000)},
		{LeakyBucket, time.Minute, in(6000)},
		{LeakyBucket, MaxWindow, in(366 * 86_400)},
	} {
		accepted := func(limit, burst quantity.Units) bool {
			_, err := Parse("limits.yaml",
				[]byte(capacityDocument(c.algorithm, limit, burst, c.window)))
			return err == nil
		}
		if !accepted(c.most, 0) {
			t.Errorf("%s over %s: limit %d was refused", c.algorithm, c.window, c.most)
		}
		if accepted(c.most+1, 0) {
			t.Errorf("%s over %s: limit %d was accepted", c.algorithm, c.window, c.most+1)
		}
		if !c.algorithm.Bucket() {
			continue
		}
		if !accepted(c.most, c.most) {
			t.Errorf("%s over %s: burst %d was refused", c.algorithm, c.window, c.most)
		}
		if accepted(c.most, c.most+1) {
			t.Errorf("%s over %s: burst %d was accepted", c.algorithm, c.window, c.most+1)
		}
	}
}

// TestCapacityRemedies follows the advice in the errors: a document refused as too large is
// accepted at the number that the error names, and refused one above. The error mentions a shorter
// window if one helps.
func TestCapacityRemedies(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a := rapid.SampledFrom(algorithms.Kinds).Draw(t, "algorithm")
		window := time.Microsecond * time.Duration(rapid.Int64Range(MinWindow.Microseconds(),
			MaxWindow.Microseconds()).Draw(t, "window"))
		limit := quantity.Units(rapid.Int64Range(1, MaxLimit).Draw(t, "limit"))
		parse := func(limit quantity.Units, window time.Duration) strictyaml.Errors {
			_, err := Parse("limits.yaml", []byte(capacityDocument(a, limit, 0, window)))
			var errs strictyaml.Errors
			errors.As(err, &errs)
			return errs
		}
		errs := parse(limit, window)
		if len(errs) == 0 {
			return
		}
		var most quantity.Units
		if _, err := fmt.Sscanf(errs[0].Mend, "write at most %d", &most); err != nil ||
			len(errs) != 1 || errs[0].Path != "limits[0].limit" {
			t.Fatalf("%v names no number", errs)
		}
		if errs := parse(most, window); len(errs) > 0 {
			t.Fatalf("the document was refused again: %v", errs)
		}
		if len(parse(most+1, window)) == 0 {
			t.Fatalf("%d was accepted, where %d was named the largest", most+1, most)
		}
		if strings.Contains(errs[0].Mend, "shorter window") {
			return
		}
		shorter := time.Microsecond * time.Duration(rapid.Int64Range(MinWindow.Microseconds(),
			window.Microseconds()).Draw(t, "shorter"))
		if len(parse(limit, shorter)) == 0 {
			t.Fatalf("%v, but a window of %s is accepted", errs, shorter)
		}
	})
}

func TestCell(t *testing.T) {
	for _, c := range []struct {
		algorithm    Algorithm
		window, cell time.Duration
	}{
		{FixedWindow, 10 * time.Millisecond, 10 * time.Millisecond},
		{FixedWindow, time.Hour, time.Hour},
		{SlidingWindowCounter, time.Minute, time.Minute},
		{SlidingWindowLog, time.Minute, 6 * time.Second},
		{SlidingWindowLog, 3 * time.Second, time.Second},
		{SlidingWindowLog, 10 * time.Millisecond, 10 * time.Millisecond},
		{TokenBucket, 10 * time.Millisecond, time.Second},
		{LeakyBucket, time.Second, time.Second},
		{LeakyBucket, 39 * time.Second, 7 * time.Second},
		{LeakyBucket, 24 * time.Hour, 10 * time.Second},
	} {
		l := Limit{Algorithm: c.algorithm, Window: c.window}
		if got := l.Cell(); got != c.cell {
			t.Errorf("%s over %s: cells of %s, want %s", c.algorithm, c.window, got, c.cell)
		}
	}
}

// TestEntriesOfOneNameMayDifferInBurst has two terms of one limit that agree on
// all but the units.
func TestEntriesOfOneNameMayDifferInBurst(t *testing.T) {
	doc := mustParse(t, `
version: 1
regions: {eu: {weight: 1}}
limits:
- {name: a, domain: api, key: [k], algorithm: token_bucket, limit: 10, window: 1s}
- {name: a, domain: api, key: [k], match: {plan: pro}, algorithm: token_bucket, limit: 10, window: 1s, burst: 100}
`)
	if free, pro := doc.Limits[0].Burst, doc.Limits[1].Burst; free != 10 || pro != 100 {
		t.Errorf("bursts %d and %d, want 10 and 100", free, pro)
	}
}

// TestABucketFills: a burst that takes more than ten years to fill is refused.
func TestABucketFills(t *testing.T) {
	for _, a := range []Algorithm{TokenBucket, LeakyBucket} {
		if _, err := Parse("limits.yaml",
			[]byte(capacityDocument(a, 1, 10, MaxWindow))); err != nil {
			t.Errorf("%s: ten years: %v", a, err)
		}
		_, err := Parse("limits.yaml", []byte(capacityDocument(a, 1, 11, MaxWindow)))
		if err == nil || !strings.Contains(err.Error(),
			"11 takes over ten years to fill with 1 in 366d; write a smaller burst") {
			t.Errorf("%s: eleven years: %v", a, err)
		}
	}
}
