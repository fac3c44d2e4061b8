package journal

import (
	"encoding/binary"
	"fmt"

	"github.com/quotad/quotad/quantity"
)

const checkpointFormat = 1 // first byte of a checkpoint's body

// bucketPrefix returns the common beginning of the keys of all checkpoints of a bucket, and of no
// other keys, because the length comes first.
func bucketPrefix(bucket string) []byte {
	b := make([]byte, 0, 2+len(bucket)+orderBytes)
	b = binary.BigEndian.AppendUint16(b, uint16(len(bucket)))
	return append(b, bucket...)
}

func checkpointKey(id checkpointID) []byte {
	return appendOrdered(bucketPrefix(id.bucket), int64(id.cell))
}

func decodeCheckpointKey(key []byte) (checkpointID, error) {
	if len(key) < 2 {
		return checkpointID{}, errShort
	}
	name, cell := key[2:], 2+int(binary.BigEndian.Uint16(key))
	switch {
	case len(key) < cell+orderBytes:
		return checkpointID{}, errShort
	case len(key) > cell+orderBytes:
		return checkpointID{}, errRest
	}
	return checkpointID{bucket: string(name[:cell-2]), cell: quantity.Cell(ordered(key[cell:]))},
		nil
}

func checkpointBody(c Checkpoint) []byte {
	b := make([]byte, 0, 1+4*binary.MaxVarintLen64)
	b = append(b, checkpointFormat)
	b = binary.AppendUvarint(b, uint64(c.Used))
	b = binary.AppendVarint(b, int64(c.At))
	b = binary.AppendUvarint(b, c.Generation)
	return binary.AppendVarint(b, int64(c.Until))
}

// decodeCheckpoint reads one record of the checkpoints part. Any bytes may be given; checkpointKey
// and checkpointBody encode what it accepts to the same bytes.
func decodeCheckpoint(key, sealed []byte) (Checkpoint, error) {
	d, err := decodeBody(key, sealed, kindCheckpoint, checkpointFormat)
	if err != nil {
		return Checkpoint{}, err
	}
	id, err := decodeCheckpointKey(key)
	if err != nil {
		return Checkpoint{}, err
	}
	c := Checkpoint{Bucket: id.bucket, Cell: id.cell}
	used := d.uvarint()
	c.At, c.Generation, c.Until = quantity.StoreTime(d.varint()), d.uvarint(),
		quantity.StoreTime(d.varint())
	if err := d.finish(); err != nil {
		return Checkpoint{}, err
	}
	// The comparison comes before the conversion, which would make the largest numbers negative.
	if used > MaxUnits {
		return Checkpoint{}, fmt.Errorf("used is %d, not 0 to %d", used, int64(MaxUnits))
	}
	c.Used = quantity.Units(used)
	return c, c.validate()
}
