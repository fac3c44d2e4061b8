package journal

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// placeAged puts the golden file of the schema before at a path, which it returns.
func placeAged(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	mustWrite(t, path, golden(t, schemaWithAges))
	return path
}

// update changes a file behind the journal's back.
func update(t *testing.T, path string, change func(*bolt.Tx) error) {
	t.Helper()
	db, err := bolt.Open(path, fileMode, boltOptions())
	suite.Must(t, err)
	suite.Must(t, db.Update(change), db.Close())
}

// hasSchema fails the test unless the closed file is of a schema, with ages in the one before.
func hasSchema(t *testing.T, path string, want uint64) {
	t.Helper()
	f, err := openFile(path, true)
	suite.Must(t, err)
	defer f.Close()
	version, err := checkOwner(f, path, identity{us1.Region, us1.Node})
	suite.Must(t, err)
	err = f.view(func(tx *bolt.Tx) error {
		if has := tx.Bucket([]byte(agesPart)) != nil; version != want || has != (want == schemaWithAges) {
			t.Fatalf("schema %d, with ages %v; want schema %d", version, has, want)
		}
		return nil
	})
	suite.Must(t, err)
}

// TestMigration: the first opening of a file of the schema before makes it one of the present schema,
// in its only commit.
func TestMigration(t *testing.T) {
	path := placeAged(t)
	hasSchema(t, path, schemaWithAges)
	for opening := range uint64(3) {
		j := mustOpen(t, path, us1)
		holdsGolden(t, j, 3+opening, 13+opening)
		mustClose(t, j)
		hasSchema(t, path, schema)
	}
}

// TestMigrationInMemory: every disk can be brought to the present schema.
func TestMigrationInMemory(t *testing.T) {
	f, err := openFile(placeAged(t), true)
	suite.Must(t, err)
	defer f.Close()
	memory := lab.NewDisk()
	for _, part := range append(disk.Parts(), agesPart) {
		err := f.Scan(part, nil, func(key, value []byte) ([]byte, error) {
			key, value = append([]byte(nil), key...), append([]byte(nil), value...)
			return nil, memory.Commit([]disk.Change{{Part: part, Key: key, Value: value}})
		})
		suite.Must(t, err)
	}
	holdsGolden(t, openDirect(t, memory), 3, 13)
	ages := 0
	err = memory.Scan(agesPart, nil, func(_, _ []byte) ([]byte, error) { ages++; return nil, nil })
	if version, other := checkOwner(memory, "in memory", identity{us1.Region, us1.Node}); version != schema || ages > 0 ||
		errors.Join(err, other) != nil {
		t.Fatalf("schema %d with %d ages, %v, %v", version, ages, err, other)
	}
	holdsGolden(t, openDirect(t, memory), 4, 14)
}

// TestCrashWithinTheMigration: what the next opening finds is of one schema or the other, and whole.
func TestCrashWithinTheMigration(t *testing.T) {
	for _, c := range []struct {
		name   string
		commit func(t *testing.T, tx *bolt.Tx, path string) error
		schema uint64 // that the crash leaves
	}{
		{"before anything was written", func(*testing.T, *bolt.Tx, string) error { return errDisk }, schemaWithAges},
		{"before the header was written", func(t *testing.T, tx *bolt.Tx, path string) error {
			before := mustRead(t, path)
			suite.Must(t, commitUnsynced(tx))
			torn := mustRead(t, path)
			copy(torn, before[:2*pageSize])
			mustWrite(t, path, torn)
			return errDisk
		}, schemaWithAges},
		{"after the commit", func(_ *testing.T, tx *bolt.Tx, _ string) error {
			return errors.Join(commitUnsynced(tx), errDisk)
		}, schema},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := placeAged(t)
			opts := us1
			opts.commit = func(tx *bolt.Tx) error { return c.commit(t, tx, path) }
			if _, err := Open(path, opts); !errors.Is(err, ErrFailed) || !errors.Is(err, errDisk) {
				t.Fatalf("Open = %v", err)
			}
			hasSchema(t, path, c.schema)
			opened := uint64(0)
			if c.schema == schema {
				opened = 1
			}
			j := mustOpen(t, path, us1)
			holdsGolden(t, j, 3+opened, 13+opened)
			mustClose(t, j)
			hasSchema(t, path, schema)
		})
	}
}

// TestDamageIsFoundBeforeTheMigration: a file of the schema before is checked as it always was, its
// ages too. One that is damaged stays as it is.
func TestDamageIsFoundBeforeTheMigration(t *testing.T) {
	last := func(tx *bolt.Tx, part disk.Part) (b *bolt.Bucket, key, sealed []byte) {
		b = tx.Bucket([]byte(part))
		key, sealed = b.Cursor().Last()
		return b, append([]byte(nil), key...), append([]byte(nil), sealed...)
	}
	for name, c := range map[string]struct {
		change func(*bolt.Tx) error
		says   string
	}{
		"an age is gone": {func(tx *bolt.Tx) error {
			ages, key, _ := last(tx, agesPart)
			return ages.Delete(key)
		}, "ages are not those of its 5 rows and checkpoints"},
		"all ages are gone": {func(tx *bolt.Tx) error { return tx.DeleteBucket([]byte(agesPart)) },
			"its parts are missing"},
		"an age is of another kind": {func(tx *bolt.Tx) error {
			ages, key, _ := last(tx, agesPart)
			other := append([]byte(nil), key...)
			other[orderBytes] ^= byte(kindRow ^ kindCheckpoint)
			return errors.Join(ages.Delete(key), ages.Put(other, seal(other, nil)))
		}, "ages are not those"},
		"an age is of another time": {func(tx *bolt.Tx) error {
			ages, key, _ := last(tx, agesPart)
			other := append([]byte(nil), key...)
			other[orderBytes-1]++
			return errors.Join(ages.Delete(key), ages.Put(other, seal(other, nil)))
		}, "ages are not those"},
		"the seal of an age is broken": {func(tx *bolt.Tx) error {
			ages, key, sealed := last(tx, agesPart)
			sealed[0]++
			return ages.Put(key, sealed)
		}, "its age"},
		"a checkpoint is gone": {func(tx *bolt.Tx) error {
			checkpoints, key, _ := last(tx, disk.Checkpoints)
			return checkpoints.Delete(key)
		}, "are not the 2 checkpoints written"},
	} {
		t.Run(name, func(t *testing.T) {
			path := placeAged(t)
			update(t, path, c.change)
			before := mustRead(t, path)
			_, err := Open(path, us1)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("Open = %v, want %q", err, c.says)
			}
			if string(mustRead(t, path)) != string(before) {
				t.Fatal("the refused file was changed")
			}
		})
	}
}
