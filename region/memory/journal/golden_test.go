package journal

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// The files testdata/schema3.db.gz and schema4.db.gz were written by versions of this package of those
// schemas. Each holds what these say, after a Prune(100) of one row and one checkpoint more.
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

// golden returns the file of a schema.
func golden(t *testing.T, schema int) []byte {
	t.Helper()
	packed, err := os.Open(fmt.Sprintf("testdata/schema%d.db.gz", schema))
	suite.Must(t, err)
	defer packed.Close()
	unpacked, err := gzip.NewReader(packed)
	suite.Must(t, err)
	image, err := io.ReadAll(unpacked)
	suite.Must(t, err)
	return image
}

// holdsGolden fails the test unless the journal holds what a golden file does, in the given
// incarnation and after so many commits.
func holdsGolden(t *testing.T, j *Journal, incarnation, sequence uint64) {
	t.Helper()
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
	if j.Incarnation() != incarnation || j.Sequence() != sequence {
		t.Errorf("incarnation %d, sequence %d", j.Incarnation(), j.Sequence())
	}
}

// TestFilesOfOtherVersionsOpen reads journals that other versions of this package wrote.
func TestFilesOfOtherVersionsOpen(t *testing.T) {
	for _, schema := range []int{3, 4} {
		t.Run(fmt.Sprint(schema), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "journal.db")
			mustWrite(t, path, golden(t, schema))
			j := mustOpen(t, path, us1)
			// It had been opened twice before, and took ten more commits.
			holdsGolden(t, j, 3, 13)
			// What it holds can be pruned, raised and added to, and is checked once more.
			mustRecord(t, j, Row{Bucket: "b", Peer: "eu", Cell: 7, Lent: 1, Until: 600}, numbered(1))
			if n := mustPrune(t, j, 502); n != 3 {
				t.Fatalf("Prune = %d", n)
			}
			mustClose(t, j)
			raised := goldenRows[2]
			raised.Lent, raised.Until = 1, 600
			sameRows(t, mustOpen(t, path, us1), []Row{raised})
		})
	}
}
