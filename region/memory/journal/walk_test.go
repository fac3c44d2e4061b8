package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// TestStructureOfEveryCommit compares the check with what bbolt writes: trees that grow, split,
// shrink and merge must all pass, after every commit.
func TestStructureOfEveryCommit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	suite.Check(t, func(rt *rapid.T) {
		placeEmpty(t, path)
		j := mustOpen(t, path, unsynced())
		defer func() { j.Close() }()
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 0))
		width := rapid.SampledFrom([]int{8, 200, 1500}).Draw(rt, "bytes of a bucket id")
		for range rapid.IntRange(1, 6).Draw(rt, "commits") {
			if random.IntN(3) == 0 {
				if _, _, err := j.Prune(quantity.StoreTime(random.Int64N(1000))); err != nil {
					rt.Fatal(err)
				}
			} else {
				mustRecord(t, j, randomRows(random, 1+random.IntN(40), width)...)
			}
			image := mustRead(t, path)
			if err := checkStructure(bytes.NewReader(image), int64(len(image))); err != nil {
				rt.Fatal(err)
			}
		}
		rows := allRows(rt, j.Rows())
		if err := j.Close(); err != nil {
			rt.Fatal(err)
		}
		j = mustOpen(t, path, unsynced())
		sameRows(t, j, rows)
	})
}

func randomRows(random *rand.Rand, n, width int) []Row {
	rows := make([]Row, n)
	for i := range rows {
		id := make([]byte, 1+random.IntN(width))
		for b := range id {
			id[b] = byte(random.Uint32())
		}
		rows[i] = Row{Bucket: string(id), Peer: "eu", Cell: quantity.Cell(random.Int64N(50)),
			Lent: quantity.Units(random.Int64N(9)), Until: quantity.StoreTime(random.Int64N(1000))}
	}
	return rows
}

// A header of an older commit, written back whole, passes every checksum.
func TestHeadersOfDistantCommitsAreRefused(t *testing.T) {
	image := smallImage(t)
	m, err := currentMeta(bytes.NewReader(image))
	suite.Must(t, err)
	for _, txid := range []uint64{m.txid - 4, m.txid - 3, m.txid - 1, m.txid + 1, m.txid + 2} {
		altered := bytes.Clone(image)
		fields := altered[m.txid%2*pageSize+pageHead:]
		binary.NativeEndian.PutUint64(fields[48:], txid)
		hash := fnv.New64a()
		hash.Write(fields[:56])
		binary.NativeEndian.PutUint64(fields[56:], hash.Sum64())
		if _, err := currentMeta(bytes.NewReader(altered)); err == nil {
			t.Fatalf("headers of commits %d and %d are taken for successive ones", txid, m.txid-1)
		}
	}
}

// smallImage is a journal of a few pages, with branches.
func smallImage(t testing.TB) []byte {
	t.Helper()
	j, path := newJournal(t, unsynced())
	for i := range 16 {
		mustRecord(t, j, Row{Bucket: string(bytes.Repeat([]byte{byte(i)}, 900)), Peer: "eu",
			Until: quantity.StoreTime(i)})
	}
	mustClose(t, j)
	return mustRead(t, path)
}

// FuzzCheckStructure alters a journal by a list of edits {page, offset (2), value}. The check must
// not panic. What passes it must also pass bbolt's own check, which would panic or hang on many of
// the altered files.
func FuzzCheckStructure(f *testing.F) {
	image := smallImage(f)
	f.Add([]byte{})
	f.Add([]byte{3, 0, 10, 0xff})              // the count of a page
	f.Add([]byte{4, 0, 24, 1, 5, 0, 12, 0x7f}) // a child, an overflow
	f.Fuzz(func(t *testing.T, edits []byte) {
		altered := bytes.Clone(image)
		for ; len(edits) >= 4; edits = edits[4:] {
			at := int(edits[0])*pageSize + int(binary.BigEndian.Uint16(edits[1:]))%pageSize
			altered[at%len(altered)] = edits[3]
		}
		if checkStructure(bytes.NewReader(altered), int64(len(altered))) != nil {
			return
		}
		suite.Must(t, boltCheck(t, altered))
	})
}

// boltCheck runs bbolt's own check of a file.
func boltCheck(t *testing.T, image []byte) error {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, image)
	db, err := bolt.Open(path, fileMode, boltOptions())
	if err != nil {
		return err
	}
	var first error
	err = db.View(func(tx *bolt.Tx) error {
		for err := range tx.Check() { // to its end, which lets its goroutine go
			if first == nil {
				first = fmt.Errorf("bbolt's own check: %w", err)
			}
		}
		return first
	})
	return errors.Join(err, db.Close())
}

func TestBoltAgreesWithTheCheck(t *testing.T) {
	suite.Must(t, boltCheck(t, smallImage(t)))
}
