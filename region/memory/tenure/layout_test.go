package tenure

import (
	"bytes"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// TestAnotherLayoutIsSaid: a node that finds its store written by a version of another layout
// counts a loss, and its log says why.
func TestAnotherLayoutIsSaid(t *testing.T) {
	for _, layout := range []int64{algorithms.Layout - 1, algorithms.Layout + 1} {
		v := newVouching(t)
		if _, err := v.lives("n1"); err != nil {
			t.Fatal(err)
		}
		stands := v.server.Ledger(store.Whole)
		if o := stands.Open(quantity.StoreTime(v.now.UnixMicro()), algorithms.Open{
			Expected: stands.Generation, Generation: stands.Generation + 1, Region: stands.Region,
			Epoch: stands.Epoch, Replid: v.server.Replid(), Layout: layout}); !o.OK {
			t.Fatalf("another version opened %+v", o)
		}
		j, err := journal.Open(filepath.Join(v.dir, "n1"), journal.Options{Region: "us", Node: "n1"})
		suite.Must(t, err)
		clock := func() time.Time { return v.now }
		way, _ := v.server.Connect(clock)
		n := of(t, "n1", v.d, way, j, clock)
		var log bytes.Buffer
		n.config.Log = slog.New(slog.NewTextHandler(&log, nil))
		suite.Must(t, n.Open(t.Context()))
		suite.Must(t, j.Close())
		said := fmt.Sprintf("another version of quotad wrote what the store holds, in layout %d,",
			layout)
		if n.Losses() != 1 || !strings.Contains(log.String(), said) {
			t.Errorf("%d losses, want 1; the log does not say %q:\n%s", n.Losses(), said,
				log.String())
		}
	}
}
