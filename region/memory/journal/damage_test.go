package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"
	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// openDamaged opens the image. It demands either ErrDamaged, with a remedy, or the whole sample,
// fit for use.
func (s sample) openDamaged(t *testing.T, path string, image []byte) (refused bool) {
	t.Helper()
	mustWrite(t, path, image)
	j, err := Open(path, unsynced())
	if err != nil {
		if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), path) ||
			!strings.Contains(err.Error(), "move the file aside") {
			t.Fatalf("Open of a damaged file = %v", err)
		}
		return true
	}
	defer j.Close()
	s.holds(t, j)
	mustRecord(t, j, numbered(1), numbered(2))
	if n := mustPrune(t, j, 11); n != 2 {
		t.Fatalf("Prune = %d", n)
	}
	s.holds(t, j)
	return false
}

func TestSampleIsWhole(t *testing.T) {
	s := newSample(t)
	if s.openDamaged(t, filepath.Join(t.TempDir(), "journal.db"), s.image) {
		t.Fatal("the sample itself is refused")
	}
}

func TestFlippedBitsAreFoundOrHarmless(t *testing.T) {
	s := newSample(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	refused, harmless := 0, 0
	suite.Check(t, func(rt *rapid.T) {
		image := bytes.Clone(s.image)
		for range rapid.IntRange(1, 3).Draw(rt, "flips") {
			page := rapid.IntRange(0, len(image)/pageSize-1).Draw(rt, "page")
			// Heads and elements are where a page's structure is.
			offset := rapid.OneOf(rapid.IntRange(0, 127), rapid.IntRange(0, pageSize-1)).Draw(rt,
				"offset")
			image[page*pageSize+offset] ^= 1 << rapid.IntRange(0, 7).Draw(rt, "bit")
		}
		if s.openDamaged(t, path, image) {
			refused++
		} else {
			harmless++ // in a free page or the unused end of one
		}
	})
	if refused == 0 || harmless == 0 {
		t.Fatalf("%d refused and %d harmless: the flips miss one kind", refused, harmless)
	}
}

func TestEveryBitOfTheHeadersCounts(t *testing.T) {
	s := newSample(t)
	for _, page := range []int{0, 1} {
		for bit := range 8 * (pageHead + 64) {
			if at := bit / 8; at >= 10 && at < pageHead {
				continue // count and overflow mean nothing in a header page
			}
			image := bytes.Clone(s.image[:2*pageSize])
			image[page*pageSize+bit/8] ^= 1 << (bit % 8)
			if _, err := currentMeta(bytes.NewReader(image)); err == nil {
				t.Fatalf("bit %d of header %d flipped goes unnoticed", bit, page)
			}
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	s := newSample(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	m, err := currentMeta(bytes.NewReader(s.image))
	suite.Must(t, err)
	used := int(m.pages) * pageSize
	for _, size := range []int{0, 1, 100, 1023, 1024, pageSize - 1, pageSize, 2*pageSize - 1,
		2 * pageSize, 3 * pageSize, used / 2, used - pageSize, used - 1} {
		if !s.openDamaged(t, path, s.image[:size]) {
			t.Fatalf("a file cut from %d to %d bytes was opened", used, size)
		}
	}
}

func TestOtherFilesAreRefused(t *testing.T) {
	s := newSample(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	for name, image := range map[string][]byte{
		"zeros":  make([]byte, len(s.image)),
		"ones":   bytes.Repeat([]byte{0xff}, len(s.image)),
		"text":   []byte(strings.Repeat("this is a letter\n", 1000)),
		"no end": s.image[pageSize:],
	} {
		if !s.openDamaged(t, path, image) {
			t.Fatalf("a file of %s was opened", name)
		}
	}
	db, err := bolt.Open(filepath.Join(t.TempDir(), "other.db"), fileMode, boltOptions())
	suite.Must(t, err)
	for range 2 {
		if err := db.Update(func(*bolt.Tx) error { return nil }); err != nil {
			t.Fatal(err)
		}
	}
	other := db.Path()
	suite.Must(t, db.Close())
	if _, err := Open(other, us1); !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(),
		"no journal") {
		t.Fatalf("Open of another program's bbolt file = %v", err)
	}
}

// TestStructureThatWouldLeadBoltAstray alters one field at a time in ways that bbolt itself would
// follow: out of the file, in a circle, or to the wrong rows.
func TestStructureThatWouldLeadBoltAstray(t *testing.T) {
	s := newSample(t)
	branch := branchOfRows(t, s.image)
	order := binary.NativeEndian
	field := func(element, n int) int { return pageHead + element*elementBytes + 4*n }
	for _, c := range []struct {
		name  string
		alter func(page []byte, leaf uint64)
		says  string
	}{
		{"child beyond the file",
			func(p []byte, _ uint64) { order.PutUint64(p[field(0, 2):], 1<<40) }, "the file has"},
		{"child is a header", func(p []byte, _ uint64) { order.PutUint64(p[field(0, 2):], 0) },
			"referred to twice"},
		{"circle", func(p []byte, _ uint64) { order.PutUint64(p[field(0, 2):], branch) },
			"referred to twice"},
		{"child twice", func(p []byte, leaf uint64) { order.PutUint64(p[field(0, 2):], leaf) },
			"keys do not fit"},
		{"branch without children", func(p []byte, _ uint64) { order.PutUint16(p[10:], 0) },
			"without children"},
		{"more elements than room", func(p []byte, _ uint64) { order.PutUint16(p[10:], 65535) },
			"no room"},
		{"unknown type", func(p []byte, _ uint64) { order.PutUint16(p[8:], 0x40) },
			"neither branch nor leaf"},
		{"overflow beyond the file", func(p []byte, _ uint64) { order.PutUint32(p[12:], 1<<31) },
			"beyond the end"},
		{"overflow over a used page", func(p []byte, _ uint64) { order.PutUint32(p[12:], 40) }, ""},
		{"another page's number", func(p []byte, _ uint64) { order.PutUint64(p, branch+1) },
			"another page's number"},
		{"key beyond the page",
			func(p []byte, _ uint64) { order.PutUint32(p[field(1, 0):], 1<<30) },
			"beyond the page"},
		{"first key sorts right but differs",
			func(p []byte, _ uint64) {
				p[uint64(field(1, 0))+uint64(order.Uint32(p[field(1, 0):]))+orderBytes+1]--
			}, "keys do not fit"},
		{"keys out of order",
			func(p []byte, _ uint64) {
				copy(p[field(1, 0):field(1, 2)], p[field(0, 0):field(0, 2)])
			}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			image := bytes.Clone(s.image)
			page := image[branch*pageSize:][:pageSize]
			c.alter(page, order.Uint64(page[field(1, 2):]))
			err := checkStructure(bytes.NewReader(image), int64(len(image)))
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("checkStructure = %v, want %q", err, c.says)
			}
			if !s.openDamaged(t, filepath.Join(t.TempDir(), "journal.db"), image) {
				t.Fatal("opened")
			}
		})
	}
}

// branchOfRows returns the root page of the sample's rows, a branch.
func branchOfRows(t *testing.T, image []byte) uint64 {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, image)
	f, err := openFile(path, true)
	suite.Must(t, err)
	var id uint64
	err = f.view(func(tx *bolt.Tx) error {
		id = uint64(tx.Bucket([]byte(disk.Rows)).Root())
		return nil
	})
	suite.Must(t, err, f.Close())
	if isLeaf(image[id*pageSize:]) {
		t.Fatal("the sample's rows fit one page: make it larger")
	}
	return id
}

// If a row vanishes while every page stays in order, the totals no longer fit.
func TestVanishedRecordsAreMissed(t *testing.T) {
	drop := func(bucket disk.Part) func(tx *bolt.Tx) error {
		return func(tx *bolt.Tx) error {
			key, _ := tx.Bucket([]byte(bucket)).Cursor().Last()
			return tx.Bucket([]byte(bucket)).Delete(key)
		}
	}
	for name, change := range map[string]func(tx *bolt.Tx) error{
		"row":        drop(disk.Rows),
		"checkpoint": drop(disk.Checkpoints),
		"saved note": drop(disk.Saved),
		"whole since": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte(disk.State)).Delete(noteWholeSince)
		},
		"store time": func(tx *bolt.Tx) error {
			return tx.Bucket([]byte(disk.State)).Delete(noteStoreTime)
		},
		"all checkpoints": func(tx *bolt.Tx) error {
			return tx.DeleteBucket([]byte(disk.Checkpoints))
		},
		"older checkpoint": func(tx *bolt.Tx) error {
			checkpoints := tx.Bucket([]byte(disk.Checkpoints))
			key, sealed := checkpoints.Cursor().Last()
			c, err := decodeCheckpoint(key, sealed)
			c.At--
			return errors.Join(err, checkpoints.Put(key, seal(key, checkpointBody(c))))
		},
		"older row": func(tx *bolt.Tx) error {
			rows := tx.Bucket([]byte(disk.Rows))
			key, sealed := rows.Cursor().First()
			r, err := decodeRow(key, sealed)
			r.Lent--
			return errors.Join(err, rows.Put(key, seal(key, rowBody(r))))
		},
		"moved row": func(tx *bolt.Tx) error {
			rows := tx.Bucket([]byte(disk.Rows))
			key, sealed := rows.Cursor().First()
			return errors.Join(rows.Put(append([]byte(nil), append(key, 'x')...), sealed))
		},
		"nested bucket": func(tx *bolt.Tx) error {
			_, err := tx.Bucket([]byte(disk.Rows)).CreateBucket([]byte("x"))
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSample(t)
			path := filepath.Join(t.TempDir(), "journal.db")
			mustWrite(t, path, s.image)
			db, err := bolt.Open(path, fileMode, boltOptions())
			suite.Must(t, err)
			suite.Must(t, db.Update(change), db.Close())
			if !s.openDamaged(t, path, mustRead(t, path)) {
				t.Fatal("opened")
			}
		})
	}
}
