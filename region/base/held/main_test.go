package held

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	ms = time.Millisecond
	// begun is the store's time at node time 0.
	begun = quantity.StoreTime(1_000_000_000_000)
	// length is that of cells.
	length = 10 * time.Second
)

// storeAt returns the store's time at a time of the node's clock.
func storeAt(t time.Duration) quantity.StoreTime { return begun.Add(t.Microseconds()) }

// answer returns what the store answered at a time, within a round trip of 2 ms, of a bucket with
// so many units free.
func answer(at time.Duration, free quantity.Units) Answer {
	cell := int64(at / length)
	return Answer{Generation: 1, Now: storeAt(at), Asked: at - ms, Heard: at + ms,
		State: algorithms.State{Cell: quantity.Cell(cell), Share: 1000, Free: free,
			Used: 1000 - free},
		Ends: storeAt(time.Duration(cell+1) * length)}
}

// denied returns the answer that there was no room for a cost, and how long there will be none.
func denied(at time.Duration, cost quantity.Units, retry time.Duration) Answer {
	a := answer(at, cost-1)
	a.Denied, a.Verdict = cost, algorithms.Verdict{Retry: retry.Microseconds()}
	return a
}

// fitted returns the answer that there was room for a cost.
func fitted(at time.Duration, cost, free quantity.Units) Answer {
	a := answer(at, free)
	a.Fitted, a.Charged = cost, cost
	return a
}
