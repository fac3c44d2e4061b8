package journal

import (
	"encoding/binary"
	"fmt"

	bolt "go.etcd.io/bbolt"
)

// schema is the version of the file's layout this package reads and writes.
const schema = 3

// The bolt buckets. The small records that change with every commit are kept
// apart from those that are large and change seldom: bbolt rewrites whole
// pages, and a policy document beside them would be written at every commit.
var (
	bucketState       = []byte("state")
	bucketSaved       = []byte("saved")
	bucketRows        = []byte("rows")
	bucketCheckpoints = []byte("checkpoints")
	bucketAges        = []byte("ages")
)

// The single records, "notes". All are written when the file is made, so that
// one missing later is damage and never a default.
var (
	noteSchema      = []byte("schema")      // in state
	noteIdentity    = []byte("identity")    // in state
	noteIncarnation = []byte("incarnation") // in state
	noteGeneration  = []byte("generation")  // in state
	noteWholeSince  = []byte("whole since") // in state
	noteStoreTime   = []byte("store time")  // in state
	noteTotals      = []byte("totals")      // in state
	notePeers       = []byte("peers")       // in saved
	notePolicy      = []byte("policy")      // in saved
)

// tally describes all records of a kind together, so that those which vanish
// from the file with an intact page around the gap are missed.
type tally struct {
	count uint64 // how many
	seals uint64 // sum of their checksums, modulo 2^64
}

// totals change with every commit.
type totals struct {
	rows        tally
	checkpoints tally
	sequence    uint64 // number of the commit
}

// policy is the document in force; saved is false until there is one.
type policy struct {
	saved   bool
	version int64
	source  []byte
}

// storeTime is what is known of the store's time: every shard has shown a time at
// or after seen, and none has shown one after latest.
type storeTime struct{ seen, latest int64 }

func (t storeTime) encode() []byte {
	return binary.AppendVarint(binary.AppendVarint(nil, t.seen), t.latest)
}

func (t *storeTime) read(d *decoder) { t.seen, t.latest = d.varint(), d.varint() }

// identity says whose journal it is.
type identity struct{ region, node string }

func (id identity) String() string { return fmt.Sprintf("region %q, node %q", id.region, id.node) }

func putNote(b *bolt.Bucket, key, body []byte) error {
	return b.Put(key, seal(key, body))
}

// getNote reads a note. The body is valid only within the transaction.
func getNote(b *bolt.Bucket, key []byte) ([]byte, error) {
	sealed := b.Get(key)
	if sealed == nil {
		return nil, fmt.Errorf("its note %q is missing", key)
	}
	body, err := unseal(key, sealed)
	if err != nil {
		return nil, fmt.Errorf("its note %q: %w", key, err)
	}
	return body, nil
}

func encodeTime(us int64) []byte { return binary.AppendVarint(nil, us) }

func encodeNumber(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func getNumber(b *bolt.Bucket, key []byte) (uint64, error) {
	var v uint64
	err := readNote(b, key, func(d *decoder) { v = d.uvarint() })
	return v, err
}

// readNote decodes a note with read, which takes every field off d.
func readNote(b *bolt.Bucket, key []byte, read func(d *decoder)) error {
	body, err := getNote(b, key)
	if err != nil {
		return err
	}
	d := decoder{rest: body}
	read(&d)
	if err := d.finish(); err != nil {
		return fmt.Errorf("its note %q: %w", key, err)
	}
	return nil
}

func encodeIdentity(id identity) []byte {
	return appendBytes(appendBytes(nil, id.region), id.node)
}

func (id *identity) read(d *decoder) {
	id.region, id.node = string(d.bytes()), string(d.bytes())
}

func encodeTotals(t totals) []byte {
	var b []byte
	for _, v := range []uint64{t.rows.count, t.rows.seals, t.checkpoints.count, t.checkpoints.seals, t.sequence} {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

func (t *totals) read(d *decoder) {
	for _, v := range []*uint64{&t.rows.count, &t.rows.seals, &t.checkpoints.count, &t.checkpoints.seals, &t.sequence} {
		*v = d.uvarint()
	}
}

func encodePeers(addresses []string) []byte {
	var b []byte
	for _, a := range addresses {
		b = appendBytes(b, a)
	}
	return b
}

func readPeers(d *decoder) []string {
	var addresses []string
	for d.err == nil && len(d.rest) > 0 {
		addresses = append(addresses, string(d.bytes()))
	}
	return addresses
}

func encodePolicy(p policy) []byte {
	if !p.saved {
		return nil
	}
	return appendBytes(binary.AppendVarint(nil, p.version), p.source)
}

func (p *policy) read(d *decoder) {
	if len(d.rest) == 0 {
		return
	}
	// The source is copied because d reads memory of the transaction.
	p.saved, p.version, p.source = true, d.varint(), append([]byte(nil), d.bytes()...)
}
