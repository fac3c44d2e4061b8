package tally

import (
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
)

// Units are what requests on a bucket asked for, by what became of them.
type Units struct {
	Admitted, Denied quantity.Units
}

// Count counts the units of one bucket, and keeps the last outcome. The zero value has counted
// nothing. Safe for concurrent use.
type Count struct {
	admitted, denied atomic.Int64 // since the last Take
	last             atomic.Uint64
}

// Admit counts units that were admitted.
func (c *Count) Admit(units quantity.Units, o Outcome) {
	c.admitted.Add(int64(units))
	c.last.Store(o.pack(true))
}

// Deny counts units that were denied.
func (c *Count) Deny(units quantity.Units, o Outcome) {
	c.denied.Add(int64(units))
	c.last.Store(o.pack(false))
}

// Take returns what was counted since the last Take.
func (c *Count) Take() Units {
	if c.admitted.Load() == 0 && c.denied.Load() == 0 {
		return Units{}
	}
	return Units{quantity.Units(c.admitted.Swap(0)), quantity.Units(c.denied.Swap(0))}
}

// Last returns the last outcome, and whether there was one.
func (c *Count) Last() (last Last, known bool) {
	packed := c.last.Load()
	return unpack(packed), packed != 0
}

// Outcome is what became of a request.
type Outcome struct {
	At         time.Time // to the millisecond, from 1970 to 2248
	Reason     uint8     // a number below 32 that stands for the reason
	FromMemory bool      // the node did not ask its store
}

// Last is the outcome of the last request on a bucket.
type Last struct {
	Outcome
	Admitted bool
}

// An outcome is one word, so that it is written and read whole: the milliseconds, the reason, and
// two bits.
const (
	reasonBits = 5
	timeShift  = reasonBits + 2
)

func (o Outcome) pack(admitted bool) uint64 {
	packed := uint64(max(o.At.UnixMilli(), 1))<<timeShift | uint64(o.Reason)<<2
	if o.FromMemory {
		packed |= 2
	}
	if admitted {
		packed |= 1
	}
	return packed
}

func unpack(packed uint64) Last {
	return Last{Admitted: packed&1 != 0,
		Outcome: Outcome{At: time.UnixMilli(int64(packed >> timeShift)), FromMemory: packed&2 != 0,
			Reason: uint8(packed >> 2 & (1<<reasonBits - 1))}}
}
