package journal

import (
	"bytes"
	"iter"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// rowsPage is how many rows Rows reads in one scan.
const rowsPage = 512

// Rows returns all durable rows, ordered by cell, bucket and peer. It is no snapshot: a row
// recorded or pruned meanwhile may appear or not; every other row appears once. If reading fails,
// the last pair is a zero Row and the error. The loop's body may call any method of the journal.
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

// readPage returns the rows that follow the key after, and the last one's key. Each page is a scan
// of its own: bolt's writer must wait for readers now and then, and the reader may be waiting for
// the writer.
func (j *Journal) readPage(after []byte) (page []Row, last []byte, err error) {
	err = j.scan(disk.Rows, after, func(key, sealed []byte) ([]byte, error) {
		if after != nil && bytes.Equal(key, after) {
			return nil, nil
		}
		if len(page) == rowsPage {
			return nil, disk.ErrStop
		}
		r, err := decodeRow(key, sealed)
		if err != nil {
			return nil, err
		}
		page, last = append(page, r), append(last[:0], key...)
		return nil, nil
	})
	if err != nil {
		return nil, nil, err
	}
	return page, last, nil
}

// RowsOf returns the durable rows of one bucket in the cells from to to, both included, ordered by
// cell and peer, as they are at one moment. It leaves out rows that wait for their commit. It looks
// up each cell and reads no other bucket's rows. ErrInvalid means that the range does not have 1 to
// MaxCells cells, or that the id cannot be a bucket's.
func (j *Journal) RowsOf(bucket string, from, to quantity.Cell) ([]Row, error) {
	if err := validateRange(bucket, from, to); err != nil {
		return nil, err
	}
	search := &rowSearch{bucket: bucket, cell: from, to: to, prefix: rowPrefix(from, bucket, 0)}
	if err := j.scan(disk.Rows, search.prefix, search.visit); err != nil {
		return nil, err
	}
	return search.rows, nil
}

// rowSearch looks up the rows of a bucket, cell by cell.
type rowSearch struct {
	bucket   string
	cell, to quantity.Cell // the cell looked at, and the last one
	prefix   []byte        // prefix of the keys of the bucket's rows in that cell
	rows     []Row         // found
}

// visit implements disk.Visit.
func (s *rowSearch) visit(key, sealed []byte) ([]byte, error) {
	for !bytes.HasPrefix(key, s.prefix) {
		if bytes.Compare(key, s.prefix) < 0 {
			return s.prefix, nil
		}
		// The bucket has no more rows in this cell.
		shown, err := decodeRowKey(key)
		if err != nil {
			return nil, err
		}
		if s.cell == s.to || shown.cell > s.to {
			return nil, disk.ErrStop
		}
		s.cell = max(s.cell+1, shown.cell) // the cells between have no row
		s.prefix = rowPrefix(s.cell, s.bucket, 0)
	}
	r, err := decodeRow(key, sealed)
	if err != nil {
		return nil, err
	}
	s.rows = append(s.rows, r)
	return nil, nil
}

// Checkpoints returns the durable checkpoints of one bucket, ordered by cell, as they are at one
// moment. It leaves out those that wait for their commit, and reads no other bucket's. ErrInvalid
// means that the id cannot be a bucket's.
func (j *Journal) Checkpoints(bucket string) ([]Checkpoint, error) {
	if err := validateBucket(bucket); err != nil {
		return nil, err
	}
	var checkpoints []Checkpoint
	prefix := bucketPrefix(bucket)
	err := j.scan(disk.Checkpoints, prefix, func(key, sealed []byte) ([]byte, error) {
		if !bytes.HasPrefix(key, prefix) {
			return nil, disk.ErrStop
		}
		c, err := decodeCheckpoint(key, sealed)
		if err != nil {
			return nil, err
		}
		checkpoints = append(checkpoints, c)
		return nil, nil
	})
	if err != nil {
		return nil, err
	}
	return checkpoints, nil
}

// CheckpointsFrom returns at most `most` durable checkpoints, ordered by bucket and cell, beginning with
// the place that the call before returned as next, or with the first one if from is empty. next is empty
// if there are no more.
func (j *Journal) CheckpointsFrom(from string, most int) (page []Checkpoint, next string, err error) {
	err = j.scan(disk.Checkpoints, []byte(from), func(key, sealed []byte) ([]byte, error) {
		if len(page) == most {
			next = string(key)
			return nil, disk.ErrStop
		}
		c, err := decodeCheckpoint(key, sealed)
		if err == nil {
			page = append(page, c)
		}
		return nil, err
	})
	return page, next, err
}

// scan reads from the disk. An error fails the journal: something that was checked when the journal
// was opened can no longer be read.
func (j *Journal) scan(part disk.Part, from []byte, visit disk.Visit) error {
	if err := j.usable(); err != nil {
		return err
	}
	err := j.disk.Scan(part, from, visit)
	switch {
	case err == nil:
		return nil
	case j.isClosing():
		return closed(j.name)
	default:
		return j.fail(err)
	}
}
