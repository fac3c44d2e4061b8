package journal

import (
	"bytes"
	"iter"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// rowsPage is how many rows Rows reads in one transaction.
const rowsPage = 512

// Rows returns all durable rows, ordered by cell, bucket and peer. It is no
// snapshot: a row recorded or pruned meanwhile may appear or not, every other
// row appears once. An error comes last, with a zero Row. The loop's body may
// call any method of the journal.
func (j *Journal) Rows() iter.Seq2[Row, error] {
	return func(yield func(Row, error) bool) {
		var after []byte
		for {
			page, last, err := j.readPage(after)
			if err != nil {
				yield(Row{}, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			if len(page) < rowsPage {
				return
			}
			after = last
		}
	}
}

// readPage returns the rows that follow the key after, and the last one's key.
// Each page is a transaction of its own, because bolt's writer must wait for
// readers now and then, and the reader may be waiting for the writer.
func (j *Journal) readPage(after []byte) (page []Row, last []byte, err error) {
	err = j.read(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketRows).Cursor()
		key, sealed := cursor.First()
		if after != nil {
			key, sealed = cursor.Seek(after)
			if slices.Equal(key, after) {
				key, sealed = cursor.Next()
			}
		}
		for ; key != nil && len(page) < rowsPage; key, sealed = cursor.Next() {
			r, err := decodeRow(key, sealed)
			if err != nil {
				return err
			}
			page, last = append(page, r), append(last[:0], key...)
		}
		return nil
	})
	if err != nil {
		return nil, nil, err
	}
	return page, last, nil
}

// RowsOf returns the durable rows of one bucket in the cells from to to, both
// included, ordered by cell and peer. They are those of one moment; a row that
// waits for its commit is not among them. It looks up each cell and reads no
// other bucket's rows, whatever the journal holds. ErrInvalid means that the
// range is not one of 1 to MaxCells cells, or the id not one of a bucket.
func (j *Journal) RowsOf(bucket string, from, to int64) ([]Row, error) {
	if err := validateRange(bucket, from, to); err != nil {
		return nil, err
	}
	var rows []Row
	err := j.read(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketRows).Cursor()
		for cell := from; cell <= to; {
			after, err := each(cursor, rowPrefix(cell, bucket, 0), func(key, sealed []byte) error {
				r, err := decodeRow(key, sealed)
				rows = append(rows, r)
				return err
			})
			if err != nil || after == nil || cell == to {
				return err
			}
			next, err := decodeRowKey(after)
			if err != nil {
				return err
			}
			cell = max(cell+1, next.cell) // those between hold no rows at all
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return rows, nil
}

// Checkpoints returns the durable checkpoints of one bucket, ordered by cell.
// They are those of one moment; one that waits for its commit is not among
// them. It reads no other bucket's. ErrInvalid means that the id is not one of
// a bucket.
func (j *Journal) Checkpoints(bucket string) ([]Checkpoint, error) {
	if err := validateBucket(bucket); err != nil {
		return nil, err
	}
	var checkpoints []Checkpoint
	err := j.read(func(tx *bolt.Tx) error {
		cursor := tx.Bucket(bucketCheckpoints).Cursor()
		_, err := each(cursor, bucketPrefix(bucket), func(key, sealed []byte) error {
			c, err := decodeCheckpoint(key, sealed)
			checkpoints = append(checkpoints, c)
			return err
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return checkpoints, nil
}

// each calls fn for the records whose keys begin with prefix, in order, and
// returns the key that follows them, nil if none does.
func each(cursor *bolt.Cursor, prefix []byte, fn func(key, sealed []byte) error) (after []byte, err error) {
	key, sealed := cursor.Seek(prefix)
	for ; bytes.HasPrefix(key, prefix); key, sealed = cursor.Next() {
		if err := fn(key, sealed); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// read runs fn in a read transaction. An error in it fails the journal: what
// was checked at Open is readable no more.
func (j *Journal) read(fn func(*bolt.Tx) error) error {
	if err := j.usable(); err != nil {
		return err
	}
	err := j.file.view(fn)
	switch {
	case err == nil:
		return nil
	case j.isClosing():
		return closed(j.file.path)
	default:
		return j.fail(err)
	}
}
