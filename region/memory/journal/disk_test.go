package journal

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// TestDisksAreAlike compares the disk of simulations with a file. The same commits bring both to
// the same records, read by key and by scans that jump ahead.
func TestDisksAreAlike(t *testing.T) {
	dir, n := t.TempDir(), 0
	suite.Check(t, func(rt *rapid.T) {
		n++
		f := newFileOfParts(t, filepath.Join(dir, fmt.Sprint(n)))
		defer f.Close()
		memory := lab.NewDisk()
		for range rapid.IntRange(1, 8).Draw(rt, "commits") {
			changes := drawChanges(rt)
			for name, d := range map[string]disk.Disk{"file": f, "memory": memory} {
				if err := d.Commit(slices.Clone(changes)); err != nil {
					rt.Fatalf("%s: %v", name, err)
				}
			}
		}
		part := rapid.SampledFrom(disk.Parts()).Draw(rt, "part")
		keys := rapid.SliceOfN(drawKey, 0, 4).Draw(rt, "keys")
		a, err := f.Get(part, keys...)
		b, other := memory.Get(part, keys...)
		if errors.Join(err, other) != nil || !slices.EqualFunc(a, b, sameValue) {
			rt.Fatalf("Get %q: file %q, %v; memory %q, %v", keys, a, err, b, other)
		}
		from := drawKey.Draw(rt, "from")
		if rapid.Bool().Draw(rt, "from the first") {
			from = nil
		}
		jump := drawKey.Draw(rt, "jump")
		limit := rapid.IntRange(0, 20).Draw(rt, "limit")
		if a, b := scanned(rt, f, part, from, jump, limit), scanned(rt, memory, part, from, jump,
			limit); !slices.Equal(a, b) {
			rt.Fatalf("Scan from %q over %q: file %q, memory %q", from, jump, a, b)
		}
	})
}

func sameValue(a, b []byte) bool { return (a == nil) == (b == nil) && bytes.Equal(a, b) }

// newFileOfParts returns a file with the parts of a journal and no records.
func newFileOfParts(t *testing.T, path string) *file {
	t.Helper()
	f, err := openFile(path, false)
	suite.Must(t, err)
	f.commit = commitUnsynced
	suite.Must(t, f.db.Update(makeParts))
	return f
}

var drawKey = rapid.SliceOfN(rapid.ByteRange('a', 'c'), 1, 3)

// drawChanges returns the changes of one commit: no two of a record.
func drawChanges(t *rapid.T) []disk.Change {
	drawChange := rapid.Custom(func(t *rapid.T) disk.Change {
		c := disk.Change{Part: rapid.SampledFrom(disk.Parts()[:2]).Draw(t, "part"),
			Key: drawKey.Draw(t, "key")}
		if rapid.IntRange(0, 3).Draw(t, "removes") > 0 {
			c.Value = rapid.SliceOfN(rapid.Byte(), 1, 3).Draw(t, "value")
		}
		return c
	})
	id := func(c disk.Change) string { return string(c.Part) + " " + string(c.Key) }
	return rapid.SliceOfNDistinct(drawChange, 0, 12, id).Draw(t, "changes")
}

// scanned returns what a scan shows. The scan stops after a number of records, and goes on at jump
// as soon as it is shown a lower key.
func scanned(t needs, d disk.Disk, part disk.Part, from, jump []byte, limit int) (shown []string) {
	t.Helper()
	jumped := false
	err := d.Scan(part, from, func(key, value []byte) ([]byte, error) {
		if len(shown) == limit {
			return nil, disk.ErrStop
		}
		shown = append(shown, fmt.Sprintf("%q: %q", key, value))
		if !jumped && bytes.Compare(key, jump) < 0 {
			jumped = true
			return jump, nil
		}
		return nil, nil
	})
	suite.Must(t, err)
	return shown
}

func TestScanReturnsTheErrorOfItsVisit(t *testing.T) {
	f, memory := newFileOfParts(t, filepath.Join(t.TempDir(), "f")), lab.NewDisk()
	defer f.Close()
	for name, d := range map[string]disk.Disk{"file": f, "memory": memory} {
		record := disk.Change{Part: disk.Rows, Key: []byte("k"), Value: []byte("v")}
		if err := d.Commit([]disk.Change{record}); err != nil {
			t.Fatal(err)
		}
		err := d.Scan(disk.Rows, nil, func(_, _ []byte) ([]byte, error) { return nil, errDisk })
		if !errors.Is(err, errDisk) {
			t.Errorf("%s: Scan = %v", name, err)
		}
	}
}

// TestDirectCrashKeepsWhatWasCommitted: only what no call announced is lost. The next journal on
// the disk finds everything else.
func TestDirectCrashKeepsWhatWasCommitted(t *testing.T) {
	raised := kept
	raised.Lent++
	for _, c := range []struct {
		name  string
		fails error
		want  Row
	}{
		{"committed", nil, raised},
		{"a commit that fails writes nothing", errDisk, kept},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := lab.NewDisk()
			j := newDirect(t, d)
			mustRecord(t, j, kept)
			d.FailCommits(c.fails)
			if err := j.Record(t.Context(), []Row{raised}); !errors.Is(err, c.fails) {
				t.Fatalf("Record = %v", err)
			}
			mustClose(t, j)
			if err := j.Record(t.Context(), []Row{numbered(1)}); !errors.Is(err, ErrClosed) {
				t.Fatalf("Record after Close = %v", err)
			}
			d.FailCommits(nil)
			next := openDirect(t, d)
			sameRows(t, next, []Row{c.want})
			if next.Incarnation() != j.Incarnation()+1 {
				t.Fatalf("incarnation %d after %d", next.Incarnation(), j.Incarnation())
			}
		})
	}
}

func TestDirectOpeningFailsWithItsCommit(t *testing.T) {
	d := lab.NewDisk()
	mustClose(t, newDirect(t, d))
	d.FailCommits(errDisk)
	if _, err := On(d, "in memory", us1); !errors.Is(err, errDisk) || !errors.Is(err, ErrFailed) {
		t.Fatalf("On a disk that fails = %v", err)
	}
	d.FailCommits(nil)
	if j := openDirect(t, d); j.Incarnation() != 2 {
		t.Fatalf("incarnation %d, want the one that follows 1", j.Incarnation())
	}
	if _, err := On(lab.NewDisk(), "in memory", us1); !errors.Is(err, ErrDamaged) {
		t.Fatalf("On a disk that is no journal = %v", err)
	}
	if err := Format(lab.NewDisk(), Options{Region: "us"}); !errors.Is(err, ErrInvalid) {
		t.Fatalf("Format without the name of a node = %v", err)
	}
}

func TestCopyOfADiskSharesNothing(t *testing.T) {
	d := lab.NewDisk()
	j := newDirect(t, d)
	mustRecord(t, j, kept)
	suite.Must(t, j.SetGeneration(3))
	before := j.Incarnation()
	c := openDirect(t, d.Copy())
	if c.Incarnation() != before+1 || j.Incarnation() != before || c.Generation() != 3 {
		t.Fatalf("the copy is incarnation %d and generation %d, the original %d", c.Incarnation(),
			c.Generation(), j.Incarnation())
	}
	raised := kept
	raised.Lent++
	mustRecord(t, j, raised, numbered(1))
	sameRows(t, c, []Row{kept})
	mustRecord(t, c, numbered(2))
	sameRows(t, j, []Row{raised, numbered(1)})
}
