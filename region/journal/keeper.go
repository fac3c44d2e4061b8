package journal

import (
	"context"
)

// Keeper is what a node needs of its journal: *Journal, or *Memory in simulations. Its methods are those
// documented there.
type Keeper interface {
	Record(ctx context.Context, rows []Row) error
	RowsOf(bucket string, from, to int64) ([]Row, error)
	Checkpoint(ctx context.Context, all []Checkpoint) error
	Checkpoints(bucket string) ([]Checkpoint, error)
	Prune(before int64) (int, error)
	Close() error
	Stats() Stats

	Incarnation() uint64
	Sequence() uint64
	Generation() uint64
	SetGeneration(g uint64) error
	WholeSince() int64
	SetWholeSince(t int64) error
	StoreTime() (seen, latest int64)
	SetStoreTime(seen, latest int64) error
	Peers() []string
	RememberPeers(addresses []string) error
	Policy() (version int64, source []byte, ok bool)
	SavePolicy(version int64, source []byte) error
}
