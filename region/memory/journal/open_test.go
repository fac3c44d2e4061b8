package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/journal/disk"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

func TestOpenMakesFolderAndFileForTheOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b", "journal.db")
	j := mustOpen(t, path, us1)
	if j.Incarnation() != 1 || j.Generation() != 0 || j.Sequence() != 1 || len(j.Peers()) != 0 {
		t.Fatalf("a new journal has incarnation %d, generation %d, sequence %d, peers %q",
			j.Incarnation(), j.Generation(), j.Sequence(), j.Peers())
	}
	if len(j.Documents()) > 0 {
		t.Fatal("a new journal has a limits document")
	}
	for name, want := range map[string]os.FileMode{
		path: 0o600, path + ownerSuffix: 0o600,
		filepath.Dir(path):               os.ModeDir | 0o700,
		filepath.Dir(filepath.Dir(path)): os.ModeDir | 0o700,
	} {
		info, err := os.Stat(name)
		suite.Must(t, err)
		if info.Mode() != want {
			t.Fatalf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	mustClose(t, j)
	left, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(left) != 1 || left[0] != path {
		t.Fatalf("after Close the folder holds %q, %v", left, err)
	}
}

func TestOpenRefusesAJournalThatIsHeld(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		j, path := newJournal(t, unsynced())
		start := time.Now()
		_, err := Open(path, us1)
		if took := time.Since(start); took > time.Second {
			t.Fatalf("Open took %v to find the journal held", took)
		}
		if !errors.Is(err, ErrInUse) {
			t.Fatalf("Open of a journal in use = %v", err)
		}
		for _, says := range []string{path, `region "us"`, `node "n1"`,
			fmt.Sprint("pid ", os.Getpid())} {
			if !strings.Contains(err.Error(), says) {
				t.Fatalf("%q does not name %s", err, says)
			}
		}
		suite.Must(t, os.Remove(path+ownerSuffix))
		if _, err := Open(path, us1); !errors.Is(err, ErrInUse) || !strings.Contains(err.Error(),
			"no note") {
			t.Fatalf("Open of a journal in use without a note = %v", err)
		}
		mustClose(t, j)
		mustClose(t, mustOpen(t, path, unsynced()))
	})
}

func TestOpenRefusesWhatIsNotItsOwn(t *testing.T) {
	rewrite := func(key, body []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := bolt.Open(path, fileMode, boltOptions())
			suite.Must(t, err)
			err = db.Update(func(tx *bolt.Tx) error {
				return tx.Bucket([]byte(disk.State)).Put(key, seal(key, body))
			})
			suite.Must(t, err, db.Close())
		}
	}
	asIs := func(*testing.T, string) {}
	for _, c := range []struct {
		name    string
		opts    Options
		prepare func(*testing.T, string)
		want    error
		says    string
	}{
		{"another region", Options{Region: "eu", Node: "n1"}, asIs, ErrForeign,
			`belongs to region "us", node "n1", this is region "eu"`},
		{"another node", Options{Region: "us", Node: "n2"}, asIs, ErrForeign,
			`this is region "us", node "n2"`},
		{"names joined otherwise", Options{Region: "usn", Node: "1"}, asIs, ErrForeign,
			"belongs to"},
		{"no region", Options{Node: "n1"}, asIs, ErrInvalid, "0 bytes"},
		{"no node", Options{Region: "us"}, asIs, ErrInvalid, "0 bytes"},
		{"the schema without checkpoints", us1, rewrite(noteSchema, encodeNumber(1)), ErrSchema,
			"it is version 1 and this program knows 3 and 4; start the quotad release that wrote it, or move the file aside"},
		{"the schema before the last", us1, rewrite(noteSchema, encodeNumber(2)), ErrSchema,
			"it is version 2 and this program knows 3 and 4; start the quotad release"},
		{"the next schema", us1, rewrite(noteSchema, encodeNumber(5)), ErrSchema,
			"it is version 5 and this program knows 3 and 4; start the quotad release"},
		{"a note left over", us1, rewrite(noteGeneration, []byte{1, 1}), ErrDamaged,
			`"generation"`},
		{"a wrong total", us1, rewrite(noteTotals, encodeTotals(totals{rows: tally{count: 2}})),
			ErrDamaged, "are not the 2 rows written"},
	} {
		t.Run(c.name, func(t *testing.T) {
			j, path := newJournal(t, unsynced())
			mustRecord(t, j, kept)
			mustClose(t, j)
			c.prepare(t, path)
			before := mustRead(t, path)
			_, err := Open(path, c.opts)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), path) {
				t.Fatalf("Open = %v, want %v, the file and %q", err, c.want, c.says)
			}
			if string(mustRead(t, path)) != string(before) {
				t.Fatal("the refused file was changed")
			}
			if _, err := os.Stat(path + ownerSuffix); err == nil {
				t.Fatal("a refused Open left an owner's note")
			}
		})
	}
}

func TestOpenSaysWhatTheSystemSaid(t *testing.T) {
	folder := t.TempDir()
	plain := filepath.Join(folder, "plain")
	mustWrite(t, plain, nil)
	for path, says := range map[string]string{
		folder:                           "no regular file but d",
		filepath.Join(plain, "inner.db"): "not a directory; check that the folder",
	} {
		if _, err := Open(path, us1); err == nil || !strings.Contains(err.Error(), says) {
			t.Fatalf("Open(%s) = %v, want %q", path, err, says)
		}
	}
}

// Killing a process does not show whether its writes reached the disk, because the system keeps
// them. A test can only see that bbolt is told to sync.
func TestCommitsAreSynced(t *testing.T) {
	j, _ := newJournal(t, us1)
	mustRecord(t, j, kept)
	if db := j.disk.(*file).db; db.NoSync || db.NoGrowSync {
		t.Fatalf("bbolt skips fsync: NoSync %v, NoGrowSync %v", db.NoSync, db.NoGrowSync)
	}
}

// If two processes find no journal, they must not end up with a file each, of which one is lost.
func TestCreatingDoesNotReplaceAJournal(t *testing.T) {
	j, path := newJournal(t, unsynced())
	mustRecord(t, j, kept)
	if err := create(path, identity{us1.Region, us1.Node}); err != nil {
		t.Fatal(err)
	}
	mustClose(t, j)
	sameRows(t, mustOpen(t, path, unsynced()), []Row{kept})
}

func TestBoundsOfWhatIsSaved(t *testing.T) {
	j, _ := newJournal(t, unsynced())
	full := make([]string, MaxAddresses)
	for i := range full {
		full[i] = fmt.Sprintf("10.0.%d.%d:7946", i/256, i%256)
	}
	for name, c := range map[string]struct {
		err error
		ok  bool
	}{
		"as many peers as may be": {j.RememberPeers(full), true},
		"one peer more":           {j.RememberPeers(append(full, "10.1.0.0:7946")), false},
		"an empty address":        {j.RememberPeers([]string{""}), false},
		"a long address": {j.RememberPeers([]string{strings.Repeat("a",
			MaxAddressBytes+1)}), false},
		"a document at the limit": {j.SaveDocuments([]Document{{1, make([]byte, MaxPolicyBytes)}}),
			true},
		"a document beyond": {j.SaveDocuments([]Document{{2, make([]byte, MaxPolicyBytes+1)}}),
			false},
		"as many documents as may be": {j.SaveDocuments(make([]Document, MaxDocuments)), true},
		"one document more":           {j.SaveDocuments(make([]Document, MaxDocuments+1)), false},
	} {
		if c.ok != (c.err == nil) || (!c.ok && !errors.Is(c.err, ErrInvalid)) {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if len(j.Peers()) != MaxAddresses {
		t.Fatalf("%d peers remembered, want the valid list of %d", len(j.Peers()), MaxAddresses)
	}
}
