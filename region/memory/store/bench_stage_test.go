package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// bucket is one bucket on the stage.
type bucket struct {
	id    string
	terms algorithms.Terms
}

// stage is a store on which loads are measured.
type stage struct {
	*Store
	b      testing.TB
	named  int                // buckets so far
	middle quantity.StoreTime // store time of a charge in the middle of the longest log
	opened []any              // the generation that calls are made under
}

// with makes b, which runs now, the benchmark that fails if something on the stage does.
func (st *stage) with(b testing.TB) *stage {
	st.b = b
	return st
}

// perMinute are the terms of a limit for each minute.
func perMinute(kind algorithms.Kind, limit quantity.Units) algorithms.Terms {
	window := time.Minute.Microseconds()
	t := algorithms.Terms{Kind: kind, Window: window, Cell: algorithms.CellLength(kind, window),
		Tick: algorithms.Tick(kind, limit, window), Entitlement: limit}
	switch {
	case kind.Sliding():
		t.ClockMargin = algorithms.ClockMargin
	case kind.Bucket():
		t.Burst = limit
	}
	return t
}

// bucket names a bucket that there is not yet; its id is as long as those of a policy.
func (st *stage) bucket(kind algorithms.Kind, limit quantity.Units) bucket {
	st.named++
	id := fmt.Sprintf("3:api,11:per-account,%d:%s,8:60000000,7:account,8:%08d,", len(kind), kind,
		st.named)
	return bucket{id, perMinute(kind, limit)}
}

// decide sends requests on one bucket as one call.
func (st *stage) decide(on bucket, costs ...quantity.Units) algorithms.Decided {
	return decide(st.b, st.Store, algorithms.Decide{Fence: under(epoch), Commit: true, Costs: costs,
		Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: BucketKey(Whole, on.id),
			Terms: on.terms}}}})
}

// singly charges the given units, each in a script call of its own, so at a time of its own.
func (st *stage) singly(on bucket, units int) {
	for range units {
		st.decide(on, 1)
	}
}

// layRows gives a bucket rows of two peers, borrowed from one and lent to the other. It does so in
// each cell up to the next, from the current one on, or from the first that still weighs. No call
// writes rows of past cells, so layRows writes these past the scripts, and checks what the scripts
// then read.
func (st *stage) layRows(on bucket, past bool) {
	now := inspect(st.b, st.Store, on.id, on.terms)
	from := now.State.Cell
	for past && on.terms.Weighs(from-1) > now.Now+3*algorithms.ClockMargin {
		from--
	}
	var text strings.Builder
	for cell := from; cell <= now.State.Cell+1; cell++ {
		fmt.Fprintf(&text, "%d eu-central 0 0 40 0 0 0;%d us-east 40 0 0 0 0 0;", cell, cell)
	}
	if err := clientOf(st.Store).HSet(context.Background(), BucketKey(Whole, on.id), "rows",
		text.String()).Err(); err != nil {
		st.b.Fatal(err)
	}
	read := inspect(st.b, st.Store, on.id, on.terms)
	if read.State.Cell != now.State.Cell {
		st.layRows(on, past) // the cell ended just now, and some rows weigh no more
		return
	}
	if want := 2 * int(now.State.Cell+2-from); len(read.Rows) != want {
		st.b.Fatalf("of %d rows laid the scripts read %d: is their field of another form now?",
			want, len(read.Rows))
	}
}

// copied makes a copy of a bucket, over any earlier one.
func (st *stage) copied(from bucket) bucket {
	to := bucket{from.id + "'", from.terms}
	if err := clientOf(st.Store).Copy(context.Background(), BucketKey(Whole, from.id),
		BucketKey(Whole, to.id), 0, true).Err(); err != nil {
		st.b.Fatal(err)
	}
	return to
}

// scripts returns how many scripts the server has run, and for how long.
func (st *stage) scripts() (calls quantity.Units, micros int64) {
	info, err := clientOf(st.Store).Info(context.Background(), "commandstats").Result()
	if err != nil {
		st.b.Fatal(err)
	}
	_, line, ok := strings.Cut(info, "cmdstat_evalsha:")
	if _, err := fmt.Sscanf(line, "calls=%d,usec=%d,", &calls, &micros); !ok || err != nil {
		st.b.Fatalf("no figures for evalsha in %q: %v", info, err)
	}
	return calls, micros
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
