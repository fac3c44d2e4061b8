package region

import (
	"context"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/region/journal"
	"github.com/quotad/quotad/region/store"
)

// Store is what a node needs of its region's store: *store.Store, or *store.Model in simulations. Its methods are those
// documented there, and safe for concurrent use where the node has goroutines.
type Store interface {
	Open(ctx context.Context, o store.Opening) (store.Opened, error)
	Adopt(ctx context.Context, epoch string) error
	Note(ctx context.Context, node, text string) (before string, err error)
	Reach(ctx context.Context, shard store.Shard) error
	TryRights(ctx context.Context) error
	Eviction(ctx context.Context) (string, error)
	Size(ctx context.Context) (store.Size, error)
	Close() error

	Beat(ctx context.Context, epoch string) error
	Latest() int64
	Surely() int64
	Generation() uint64
	Begun(shard store.Shard) int64
	LostAt(shard store.Shard) int64
	Secret() string
	Shards() store.Shards
	Deadline() time.Duration
	Address() store.Address
	Data() []string

	Decide(ctx context.Context, calls []algorithms.Decide) []store.Result[algorithms.Decided]
	Lend(ctx context.Context, calls []algorithms.Lend) []store.Result[algorithms.Given]
	Credit(ctx context.Context, calls []algorithms.Credit) []store.Result[algorithms.Credited]
	Recall(ctx context.Context, calls []algorithms.Recall) []store.Result[algorithms.Recalled]
	Restore(ctx context.Context, calls []algorithms.Restore) []store.Result[algorithms.Restored]
	Book(ctx context.Context, calls []algorithms.Book) []store.Result[algorithms.Booked]
	Inspect(ctx context.Context, c algorithms.Inspect) (algorithms.Inspected, error)
	Refund(ctx context.Context, c algorithms.Refund) (algorithms.Refunded, error)
	Reset(ctx context.Context, c algorithms.Reset) (algorithms.Cleared, error)
}

// Journal is what a node needs of its journal: *journal.Journal, or *journal.Memory in simulations. Its methods are those
// documented there.
type Journal interface {
	Record(ctx context.Context, rows []journal.Row) error
	RowsOf(bucket string, from, to int64) ([]journal.Row, error)
	Checkpoint(ctx context.Context, all []journal.Checkpoint) error
	Checkpoints(bucket string) ([]journal.Checkpoint, error)
	Prune(before int64) (int, error)
	Close() error
	Stats() journal.Stats

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
