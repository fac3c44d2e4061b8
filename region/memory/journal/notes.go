package journal

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/journal/disk"
)

// schema is the version of the records that this package writes. It also reads schemaWithAges.
const schema = 4

// The single records, called notes. Format writes all of them, so that a note which is missing
// later is damage, and never a default, but for the names and the seals.
var (
	noteSchema      = []byte("schema")      // in disk.State
	noteIdentity    = []byte("identity")    // in disk.State
	noteIncarnation = []byte("incarnation") // in disk.State
	noteGeneration  = []byte("generation")  // in disk.State
	noteWholeSince  = []byte("whole since") // in disk.State
	noteStoreTime   = []byte("store time")  // in disk.State
	noteTotals      = []byte("totals")      // in disk.State
	notePeers       = []byte("peers")       // in disk.Saved
	notePolicy      = []byte("policy")      // in disk.Saved: the open documents
	noteNames       = []byte("names")       // in disk.Saved; a journal of an earlier release has none
	noteSeals       = []byte("seals")       // likewise
)

// tally describes all records of a kind together. If records vanish from the file while every page
// stays intact, the tally no longer fits.
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

// documents are the limits documents that are open, the oldest first; none until there is one.
type documents []Document

// Document is a limits document: its version, and its text byte for byte.
type Document struct {
	Version int64
	Source  []byte
}

// identity says whose journal it is.
type identity struct{ region, node string }

func (id identity) String() string { return fmt.Sprintf("region %q, node %q", id.region, id.node) }

// Format writes the notes of a new journal to an empty disk. On then opens it as incarnation 1.
func Format(d disk.Disk, opts Options) error {
	owner, err := opts.owner("to be made")
	if err != nil {
		return err
	}
	return format(d, owner)
}

func format(d disk.Disk, owner identity) error {
	t := newTransaction(d, totals{}, storeTime{}, nil)
	t.note(disk.State, noteSchema, encodeNumber(schema))
	t.note(disk.State, noteIdentity, encodeIdentity(owner))
	t.note(disk.State, noteIncarnation, encodeNumber(0))
	t.note(disk.State, noteGeneration, encodeNumber(0))
	t.note(disk.State, noteWholeSince, encodeTime(math.MaxInt64))
	t.note(disk.State, noteStoreTime, storeTime{}.encode())
	t.note(disk.State, noteTotals, encodeTotals(totals{}))
	t.note(disk.Saved, notePeers, encodePeers(nil))
	t.note(disk.Saved, notePolicy, documents(nil).encode())
	return d.Commit(t.changes)
}

func encodeTime(us quantity.StoreTime) []byte { return binary.AppendVarint(nil, int64(us)) }

func encodeNumber(v uint64) []byte { return binary.AppendUvarint(nil, v) }

// readNote calls read to take every field of a note off its body.
func readNote(d disk.Disk, part disk.Part, key []byte, read func(body *decoder)) error {
	values, err := d.Get(part, key)
	if err != nil {
		return fmt.Errorf("its note %q: %w", key, err)
	}
	if values[0] == nil {
		return fmt.Errorf("its note %q is missing", key)
	}
	body, err := unseal(key, values[0])
	if err != nil {
		return fmt.Errorf("its note %q: %w", key, err)
	}
	fields := decoder{rest: body}
	read(&fields)
	if err := fields.finish(); err != nil {
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
	for _, of := range []tally{t.rows, t.checkpoints} {
		b = binary.AppendUvarint(binary.AppendUvarint(b, of.count), of.seals)
	}
	b = binary.AppendUvarint(b, t.sequence)
	return b
}

func (t *totals) read(d *decoder) {
	t.rows.count, t.rows.seals = d.uvarint(), d.uvarint()
	t.checkpoints.count, t.checkpoints.seals = d.uvarint(), d.uvarint()
	t.sequence = d.uvarint()
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

func (all documents) encode() (b []byte) {
	for _, d := range all {
		b = appendBytes(binary.AppendVarint(b, d.Version), d.Source)
	}
	return b
}

func (all *documents) read(d *decoder) {
	for len(d.rest) > 0 && d.err == nil {
		// The source is copied because it outlives what d reads from.
		*all = append(*all, Document{d.varint(), append([]byte(nil), d.bytes()...)})
	}
}
