package journal

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// The file testdata/schema3.db.gz was written by a version of this package that called bbolt at
// every step. It holds what these say, after a Prune(100) of one row and one checkpoint more.
var (
	goldenRows = []Row{
		{Bucket: "a", Peer: "eu", Cell: -1, Lent: 1, Returned: 2, Burst: 3, Generation: 4,
			Until: 500},
		{Bucket: "b", Peer: "ap", Cell: 7, Lent: MaxUnits, Generation: 5, Until: 501},
		{Bucket: "b", Peer: "eu", Cell: 7, Returned: MaxUnits, Until: 502},
	}
	goldenCheckpoints = []Checkpoint{
		{Bucket: "a", Cell: 1, Used: 17, At: 90, Until: 700, Generation: 4},
		{Bucket: "a", Cell: 2, Used: MaxUnits, At: 91, Until: 701, Generation: 5},
	}
	goldenPolicy = bytes.Repeat([]byte("limits: []\n"), 700)
	goldenPeers  = []string{"10.0.0.1:7946", "10.0.0.2:7946"}
)

// TestFileOfTheVersionBeforeOpens reads a journal that another version of this package wrote.
func TestFileOfTheVersionBeforeOpens(t *testing.T) {
	packed, err := os.Open("testdata/schema3.db.gz")
	suite.Must(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	suite.Must(t, err)
	image, err := io.ReadAll(unpacked)
	suite.Must(t, err)
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, image)
	j := mustOpen(t, path, us1)
	sameRows(t, j, goldenRows)
	sameCheckpoints(t, j, "a", goldenCheckpoints...)
	if all := j.Documents(); len(all) != 1 || !sameDocument(all[0], Document{12, goldenPolicy}) {
		t.Errorf("documents %v", all)
	}
	if !slices.Equal(j.Peers(), goldenPeers) || j.Generation() != 5 || j.WholeSince() != 13 {
		t.Errorf("peers %q, generation %d, whole since %d", j.Peers(), j.Generation(),
			j.WholeSince())
	}
	if seen, latest := j.StoreTime(); !slices.Equal(seen, []quantity.StoreTime{14}) || latest != 15 {
		t.Errorf("store time %d to %d", seen, latest)
	}
	// It had been opened twice before, and took ten more commits.
	if j.Incarnation() != 3 || j.Sequence() != 13 {
		t.Errorf("incarnation %d, sequence %d", j.Incarnation(), j.Sequence())
	}
	// What it holds can be pruned, raised and added to, and is checked once more.
	mustRecord(t, j, Row{Bucket: "b", Peer: "eu", Cell: 7, Lent: 1, Until: 600}, numbered(1))
	if n, err := j.Prune(502); n != 3 || err != nil {
		t.Fatalf("Prune = %d, %v", n, err)
	}
	mustClose(t, j)
	raised := goldenRows[2]
	raised.Lent, raised.Until = 1, 600
	sameRows(t, mustOpen(t, path, us1), []Row{raised})
}
