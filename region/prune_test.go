package region_test

import (
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
)

// A node looks at all of its journal in a minute, at a part of it at a time, and drops what has ended.
func TestPruneGoesRoundInAMinute(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m")
	oneNode(t, d, func(t *testing.T, _ *cluster, n *running) {
		const all = 7 * journal.PruneLimit
		stays := quantity.StoreTime(time.Now().Add(time.Hour).UnixMicro())
		checkpoints := make([]journal.Checkpoint, all)
		for i := range checkpoints {
			checkpoints[i] = journal.Checkpoint{Bucket: strconv.Itoa(i), Until: quantity.StoreTime(i%2) * stays}
		}
		for some := range slices.Chunk(checkpoints, journal.MaxCheckpoints) {
			suite.Must(t, n.journal.Checkpoint(t.Context(), some))
		}
		left := func() int { return int(n.journal.Stats().Checkpoints) }
		time.Sleep(11 * time.Second)
		if got := left(); got <= all/2 || got >= all {
			t.Errorf("%d checkpoints of %d after one call of Forget", got, all)
		}
		time.Sleep(50 * time.Second)
		if got := left(); got != all/2 {
			t.Errorf("%d checkpoints are left, want the %d that have not ended", got, all/2)
		}
	})
}
