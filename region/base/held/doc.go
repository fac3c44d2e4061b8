// Package held caches, for each bucket, the store's last denial ([Denial]) and prefetched units
// ([Chunk]), so that not every request asks the region's store.
//
// Neither loosens a limit. A denial admits nothing. The units of a chunk count as used in the store
// from before the first of them is spent, are spent in the cell that they were charged to, and go
// back once at most. What a node loses with its memory was charged and is not spent.
//
// A client that decides by itself for a moment caches the same of a bucket, with a node in the
// place of the store (package client).
//
// Times come in as durations by a clock that goes on while the machine is suspended, and never goes
// back ([Clock]). No method waits.
package held

import (
	"sync"
	"sync/atomic"

	"github.com/quotad/quotad/quantity"
)

// Memory is what a node holds of one bucket. The zero value holds nothing. Safe for concurrent use;
// Deny, Turn and Take lock nothing.
type Memory struct {
	denial atomic.Pointer[denial]
	lower  atomic.Pointer[lower]
	chunk  atomic.Pointer[Chunk]
	turns  turns
	// lowerTurns is of requests of smaller parts, so that those of the whole do not wait behind
	// them.
	lowerTurns turns
	// filling is true while units for a chunk are asked for.
	filling atomic.Bool

	mu sync.Mutex // of what follows, and held while denial or chunk are replaced
	// changed is the store time up to which answers may no longer hold: rights or units came back,
	// or the store has answered since.
	changed quantity.StoreTime
	pace    pace
	free    quantity.Units // as the store last said
}
