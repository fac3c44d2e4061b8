package journal

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

var us1 = Options{Region: "us", Node: "n1"}

// unsynced are us1's options without fsync, for tests that crash by copying the file. Copying reads
// the page cache.
func unsynced() Options {
	opts := us1
	opts.commit = commitUnsynced
	return opts
}

func commitUnsynced(tx *bolt.Tx) error {
	tx.DB().NoSync, tx.DB().NoGrowSync = true, true
	return tx.Commit()
}

func mustOpen(t testing.TB, path string, opts Options) *Journal {
	t.Helper()
	j, err := Open(path, opts)
	suite.Must(t, err)
	t.Cleanup(func() { j.Close() })
	return j
}

func newJournal(t testing.TB, opts Options) (*Journal, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	placeEmpty(t, path)
	return mustOpen(t, path, opts), path
}

// emptyImage returns a journal of us1 that was never opened, to be copied:
// making one costs many fsyncs.
var emptyImage = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "journal")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	path := filepath.Join(folder, "journal.db")
	if err := createIfMissing(path, identity{us1.Region, us1.Node}); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// placeEmpty puts a journal that was never opened at path.
func placeEmpty(t testing.TB, path string) {
	t.Helper()
	image, err := emptyImage()
	suite.Must(t, err)
	mustWrite(t, path, image)
}

func mustRecord(t testing.TB, j *Journal, rows ...Row) {
	t.Helper()
	suite.Must(t, j.Record(context.Background(), rows))
}

func mustCheckpoint(t testing.TB, j *Journal, checkpoints ...Checkpoint) {
	t.Helper()
	suite.Must(t, j.Checkpoint(context.Background(), checkpoints))
}

// mustPrune begins a round of Prune and ends it. It returns how many records were removed.
func mustPrune(t needs, j *Journal, before quantity.StoreTime) (pruned int) {
	t.Helper()
	j.round.at = front
	for {
		n, done, err := j.Prune(before)
		suite.Must(t, err)
		if pruned += n; done {
			return pruned
		}
	}
}

// sameCheckpoints fails the test unless those are the bucket's, by cell.
func sameCheckpoints(t testing.TB, j *Journal, bucket string, want ...Checkpoint) {
	t.Helper()
	if got, err := j.Checkpoints(bucket); err != nil || !slices.Equal(got, want) {
		t.Fatalf("checkpoints of %.20q are %v, %v, want %v", bucket, got, err, want)
	}
}

func mustClose(t testing.TB, j *Journal) {
	t.Helper()
	suite.Must(t, j.Close())
}

// needs is what helpers need of a *testing.T or a *rapid.T.
type needs interface {
	Helper()
	Fatal(...any)
}

// newDirect makes a journal of us1 on a disk in memory, whose calls commit by themselves.
func newDirect(t needs, d *lab.Disk) *Journal {
	t.Helper()
	suite.Must(t, Format(d, us1))
	return openDirect(t, d)
}

func openDirect(t needs, d disk.Disk) *Journal {
	t.Helper()
	opts := us1
	opts.Direct = true
	j, err := On(d, "in memory", opts)
	suite.Must(t, err)
	return j
}

// allRows reads every row, in the journal's order.
func allRows(t needs, rows iter.Seq2[Row, error]) []Row {
	t.Helper()
	var all []Row
	for r, err := range rows {
		suite.Must(t, err)
		all = append(all, r)
	}
	return all
}

func sameRows(t testing.TB, j *Journal, want []Row) {
	t.Helper()
	want = slices.Clone(want)
	slices.SortFunc(want, func(a, b Row) int { return a.id().compare(b.id()) })
	got := allRows(t, j.Rows())
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("the journal holds %d rows, want %d; from row %d on %.300q, want %.300q",
				len(got), len(want), i, fmt.Sprint(got[min(i, len(got)):]),
				fmt.Sprint(want[min(i, len(want)):]))
		}
	}
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	b, err := os.ReadFile(path)
	suite.Must(t, err)
	return b
}

func mustWrite(t testing.TB, path string, b []byte) {
	t.Helper()
	suite.Must(t, os.WriteFile(path, b, fileMode))
}

// sample is a closed journal with trees of several levels, inline buckets,
// overflow pages and free pages, and what it holds.
type sample struct {
	image       []byte
	rows        []Row
	checkpoints []Checkpoint // each of a bucket of its own
	policy      []byte
	peers       []string
}

func newSample(t testing.TB) sample {
	t.Helper()
	j, path := newJournal(t, unsynced())
	s := sample{policy: bytes.Repeat([]byte("limits: []\n"), 1500), peers: []string{"10.0.0.1:7946",
		"10.0.0.2:7946"}}
	for i := range 400 {
		s.rows = append(s.rows, Row{
			Bucket: string(bytes.Repeat([]byte{byte(i)}, 1+i%97)), Peer: "eu",
			Cell: quantity.Cell(i / 7),
			Lent: quantity.Units(i), Returned: quantity.Units(i / 2), Burst: quantity.Units(i / 3),
			Generation: 7, Until: quantity.StoreTime(1000 + i),
		})
	}
	for i := range 300 {
		s.checkpoints = append(s.checkpoints, Checkpoint{
			Bucket: fmt.Sprint(i, string(bytes.Repeat([]byte{byte(i)}, i%97))),
			Cell:   quantity.Cell(i), Used: quantity.Units(i),
			At: quantity.StoreTime(i), Until: quantity.StoreTime(2000 + i), Generation: 7,
		})
	}
	s.rows[9].Bucket = string(bytes.Repeat([]byte{0xff}, MaxBucketBytes))
	for chunk := range slices.Chunk(s.rows, 100) {
		mustRecord(t, j, chunk...)
	}
	mustCheckpoint(t, j, s.checkpoints...)
	mustCheckpoint(t, j, Checkpoint{Bucket: "pruned", Until: 1000})
	for _, err := range []error{j.SaveDocuments(s.documents()), j.RememberPeers(s.peers),
		j.SetGeneration(7), j.SetWholeSince(11)} {
		suite.Must(t, err)
	}
	if n := mustPrune(t, j, 1040); n != 41 {
		t.Fatalf("Prune = %d", n)
	}
	s.rows = s.rows[40:]
	mustClose(t, j)
	s.image = mustRead(t, path)
	return s
}

// documents returns the sample's limits documents.
func (s sample) documents() []Document {
	return []Document{{3, s.policy}, {4, s.policy[:11]}}
}

// holds fails the test unless the journal holds exactly the sample.
func (s sample) holds(t testing.TB, j *Journal) {
	t.Helper()
	sameRows(t, j, s.rows)
	if got := j.Stats().Checkpoints; got != uint64(len(s.checkpoints)) {
		t.Fatalf("%d checkpoints, want %d", got, len(s.checkpoints))
	}
	for _, c := range s.checkpoints {
		sameCheckpoints(t, j, c.Bucket, c)
	}
	if !slices.EqualFunc(j.Documents(), s.documents(), sameDocument) {
		t.Fatalf("the documents are %v, want %v", j.Documents(), s.documents())
	}
	if !slices.Equal(j.Peers(), s.peers) || j.Generation() != 7 || j.WholeSince() != 11 {
		t.Fatalf("peers %q, generation %d and whole since %d, want %q, 7 and 11", j.Peers(),
			j.Generation(), j.WholeSince(), s.peers)
	}
}
