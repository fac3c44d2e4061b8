package journal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// The file's records. Every value is sealed: it ends in a CRC-32C of its key and body, so that a
// record that was moved, cut or altered on disk is found.
//
//	rows:  cell (8, ordered) | length of bucket (2) | bucket | peer
//	       -> rowFormat | lent | returned | burst | generation (uvarints) | until (varint)
//	checkpoints:
//	       length of bucket (2) | bucket | cell (8, ordered)
//	       -> checkpointFormat | used (uvarint) | at (varint) | generation (uvarint)
//	          | until (varint)
//
// Numbers in keys are big-endian with the sign bit flipped. So the file's order is that of the
// numbers. Rows are ordered by cell first: the rows of one commit, mostly of the cells in force,
// then lie on few pages. Checkpoints are ordered by bucket first, because that is how they are asked
// for. A bucket's id is long beside the rest, so that each record has it once, and there is no index.

const (
	rowFormat  = 2 // first byte of a row's body
	sealBytes  = 4
	orderBytes = 8
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var (
	errShort  = errors.New("the record is cut short")
	errSeal   = errors.New("the record's checksum does not match")
	errNumber = errors.New(
		"the record holds a number that is cut short or not in its shortest form")
	errRest = errors.New("the record has bytes left over")
)

// seal returns body followed by the checksum of key and body.
func seal(key, body []byte) []byte {
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
	sealed := make([]byte, 0, len(body)+sealBytes)
	return binary.BigEndian.AppendUint32(append(sealed, body...), sum)
}

// unseal returns the body of a sealed value if its checksum matches.
func unseal(key, sealed []byte) ([]byte, error) {
	if len(sealed) < sealBytes {
		return nil, errShort
	}
	body := sealed[:len(sealed)-sealBytes]
	sum := crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, body)
	if uint64(sum) != sealOf(sealed) {
		return nil, errSeal
	}
	return body, nil
}

// sealOf returns the checksum at the end of a sealed value.
func sealOf(sealed []byte) uint64 {
	return uint64(binary.BigEndian.Uint32(sealed[len(sealed)-sealBytes:]))
}

func appendOrdered(b []byte, v int64) []byte {
	return binary.BigEndian.AppendUint64(b, uint64(v)^1<<63)
}

func ordered(b []byte) int64 {
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63)
}

func rowKey(id rowID) []byte {
	return append(rowPrefix(id.cell, id.bucket, len(id.peer)), id.peer...)
}

// rowPrefix returns the common beginning of the keys of all rows of a cell and bucket, and of no
// other keys. It has capacity for more bytes.
func rowPrefix(cell quantity.Cell, bucket string, more int) []byte {
	b := make([]byte, 0, orderBytes+2+len(bucket)+more)
	b = appendOrdered(b, int64(cell))
	b = binary.BigEndian.AppendUint16(b, uint16(len(bucket)))
	return append(b, bucket...)
}

func decodeRowKey(key []byte) (rowID, error) {
	const head = orderBytes + 2
	if len(key) < head {
		return rowID{}, errShort
	}
	n := int(binary.BigEndian.Uint16(key[orderBytes:]))
	if len(key) < head+n {
		return rowID{}, errShort
	}
	return rowID{
		cell:   quantity.Cell(ordered(key)),
		bucket: string(key[head : head+n]),
		peer:   string(key[head+n:]),
	}, nil
}

// kind is a kind of records that end: rows or checkpoints.
type kind byte

const (
	kindRow        kind = 1
	kindCheckpoint kind = 2
)

func (k kind) String() string {
	switch k {
	case kindRow:
		return "row"
	case kindCheckpoint:
		return "checkpoint"
	}
	return fmt.Sprintf("record of unknown kind %d", byte(k))
}

// part returns the part that holds records of a kind.
func (k kind) part() disk.Part {
	if k == kindRow {
		return disk.Rows
	}
	return disk.Checkpoints
}

// untilOf returns when a row or a checkpoint ends, without reading the rest of it or checking its
// seal. Until is the last number of both, and of the bytes of a varint only the last is below 0x80.
func untilOf(sealed []byte) (quantity.StoreTime, error) {
	end := len(sealed) - sealBytes
	if end < 2 {
		return 0, errShort
	}
	start := end - 1
	for start > 1 && sealed[start-1] >= 0x80 {
		start--
	}
	d := decoder{rest: sealed[start:end]}
	until := quantity.StoreTime(d.varint())
	return until, d.finish()
}

func rowBody(r Row) []byte {
	b := make([]byte, 0, 1+5*binary.MaxVarintLen64)
	b = append(b, rowFormat)
	b = binary.AppendUvarint(b, uint64(r.Lent))
	b = binary.AppendUvarint(b, uint64(r.Returned))
	b = binary.AppendUvarint(b, uint64(r.Burst))
	b = binary.AppendUvarint(b, r.Generation)
	return binary.AppendVarint(b, int64(r.Until))
}

// decodeRow reads one record of the rows part. Any bytes may be given; rowKey and rowBody encode
// what it accepts to the same bytes.
func decodeRow(key, sealed []byte) (Row, error) {
	d, err := decodeBody(key, sealed, kindRow, rowFormat)
	if err != nil {
		return Row{}, err
	}
	id, err := decodeRowKey(key)
	if err != nil {
		return Row{}, err
	}
	r := Row{Bucket: id.bucket, Peer: id.peer, Cell: id.cell}
	lent, returned, burst := d.uvarint(), d.uvarint(), d.uvarint()
	r.Generation, r.Until = d.uvarint(), quantity.StoreTime(d.varint())
	if err := d.finish(); err != nil {
		return Row{}, err
	}
	// The comparison comes before the conversion, which would make the largest numbers negative.
	if lent > MaxUnits || returned > MaxUnits || burst > MaxUnits {
		return Row{}, fmt.Errorf("lent is %d, returned %d and burst %d, not 0 to %d",
			lent, returned, burst, int64(MaxUnits))
	}
	r.Lent, r.Returned, r.Burst = quantity.Units(lent), quantity.Units(returned),
		quantity.Units(burst)
	return r, r.validate()
}

// decodeBody unseals a record and returns what reads its fields, which follow its format.
func decodeBody(key, sealed []byte, k kind, format byte) (decoder, error) {
	body, err := unseal(key, sealed)
	switch {
	case err != nil:
		return decoder{}, err
	case len(body) == 0:
		return decoder{}, errShort
	case body[0] != format:
		return decoder{}, fmt.Errorf("the %v has format %d, not %d", k, body[0], format)
	}
	return decoder{rest: body[1:]}, nil
}

// decoder reads fields off the front of a record and keeps the first error.
type decoder struct {
	rest []byte
	err  error
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	d.number(n)
	return v
}

func (d *decoder) varint() int64 {
	v, n := binary.Varint(d.rest)
	d.number(n)
	return v
}

// number takes the n bytes of a varint. A trailing zero byte would give one
// number two encodings.
func (d *decoder) number(n int) {
	if d.err != nil {
		return
	}
	if n <= 0 || (n > 1 && d.rest[n-1] == 0) {
		d.err, d.rest = errNumber, nil
		return
	}
	d.rest = d.rest[n:]
}

// bytes takes a byte string with its length before it.
func (d *decoder) bytes() []byte {
	n := d.uvarint()
	if d.err == nil && n > uint64(len(d.rest)) {
		d.err, d.rest = errShort, nil
	}
	if d.err != nil {
		return nil
	}
	b := d.rest[:n]
	d.rest = d.rest[n:]
	return b
}

func (d *decoder) finish() error {
	if d.err == nil && len(d.rest) > 0 {
		d.err = errRest
	}
	return d.err
}

func appendBytes[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}
