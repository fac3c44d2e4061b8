package journal

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestRowsEncodeAndDecode(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		r := drawRow.Draw(t, "row")
		key := rowKey(r.id())
		got, err := decodeRow(key, seal(key, rowBody(r)))
		if err != nil || got != r {
			t.Fatalf("%v decodes as %v, %v", r, got, err)
		}
		if until, err := untilOf(seal(key, rowBody(r))); until != r.Until || err != nil {
			t.Fatalf("%v ends at %d, %v", r, until, err)
		}
	})
}

func TestKeysOrderAsRowsDo(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a, b := drawRow.Draw(t, "a"), drawRow.Draw(t, "b")
		if got, want := bytes.Compare(rowKey(a.id()), rowKey(b.id())),
			a.id().compare(b.id()); got != want {
			t.Fatalf("keys compare as %d, rows as %d", got, want)
		}
	})
}

func TestSealCoversKeyAndBody(t *testing.T) {
	key, body := []byte("key"), []byte("body")
	sealed := seal(key, body)
	for i := range len(sealed) * 8 {
		flipped := bytes.Clone(sealed)
		flipped[i/8] ^= 1 << (i % 8)
		if _, err := unseal(key, flipped); err == nil {
			t.Fatalf("bit %d flipped goes unnoticed", i)
		}
	}
	if _, err := unseal([]byte("kez"), sealed); err == nil {
		t.Fatal("another key goes unnoticed")
	}
}

func TestMergeLaws(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a, b, c := drawRow.Draw(t, "a"), drawRow.Draw(t, "b"), drawRow.Draw(t, "c")
		b.Bucket, b.Peer, b.Cell = a.Bucket, a.Peer, a.Cell
		c.Bucket, c.Peer, c.Cell = a.Bucket, a.Peer, a.Cell
		switch {
		case a.raise(b) != b.raise(a):
			t.Fatal("not commutative")
		case a.raise(b).raise(c) != a.raise(b.raise(c)):
			t.Fatal("not associative")
		case a.raise(b).raise(b) != a.raise(b):
			t.Fatal("not idempotent")
		}
	})
}

// FuzzDecodeRow feeds the decoder raw values, and bodies under a good seal so
// that it is reached beyond the checksum.
func FuzzDecodeRow(f *testing.F) {
	for _, r := range []Row{kept, numbered(3), {Bucket: "\x00", Peer: "p", Cell: -1, Lent: MaxUnits,
		Returned: MaxUnits, Burst: MaxUnits, Until: -1}} {
		f.Add(rowKey(r.id()), rowBody(r))
	}
	f.Add([]byte{}, []byte{})
	f.Add(make([]byte, 10), []byte{rowFormat, 0x80, 0})
	f.Fuzz(func(t *testing.T, key, body []byte) {
		if _, err := decodeRow(key, body); err == nil {
			t.Log("the fuzzer found a checksum")
		}
		r, err := decodeRow(key, seal(key, body))
		if err != nil {
			return
		}
		if err := r.validate(); err != nil {
			t.Fatalf("decoded a row that may not be recorded: %v", err)
		}
		if !bytes.Equal(rowKey(r.id()), key) || !bytes.Equal(rowBody(r), body) {
			t.Fatalf("%v has a second encoding: key %x, body %x", r, key, body)
		}
	})
}

// TestRowBodyHasEveryNumber writes the encoding out: each number has its place, and none but these
// is accepted.
func TestRowBodyHasEveryNumber(t *testing.T) {
	r := Row{Bucket: "b", Peer: "eu", Cell: 3, Lent: 1, Returned: 2, Burst: 3, Generation: 4,
		Until: -5}
	body := rowBody(r)
	if want := []byte{2, 1, 2, 3, 4, 9}; !bytes.Equal(body, want) {
		t.Fatalf("body %v, want %v: format, lent, returned, burst, generation, until", body, want)
	}
	key, huge := rowKey(r.id()), []byte{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x04} // 2^51 + 1
	for place, name := range []string{"lent", "returned", "burst"} {
		forged := slices.Concat(body[:1+place], huge, body[2+place:])
		if _, err := decodeRow(key, seal(key, forged)); err == nil || !strings.Contains(err.Error(),
			name+" ") || !strings.Contains(err.Error(), "2251799813685249") {
			t.Errorf("%s of 2^51 + 1: %v", name, err)
		}
		cut := slices.Concat(body[:1+place], body[2+place:])
		if _, err := decodeRow(key, seal(key, cut)); err == nil {
			t.Errorf("without %s: accepted", name)
		}
	}
	// a row as written before there was burst
	older := slices.Concat([]byte{1}, body[1:3], body[4:])
	if _, err := decodeRow(key, seal(key, older)); err == nil || !strings.Contains(err.Error(),
		"format 1") {
		t.Errorf("a row of format 1: %v", err)
	}
}

// compare orders rows as the file does: by cell, bucket and peer, a shorter
// bucket id before a longer one.
func (id rowID) compare(other rowID) int {
	return cmp.Or(
		cmp.Compare(id.cell, other.cell),
		cmp.Compare(len(id.bucket), len(other.bucket)),
		cmp.Compare(id.bucket, other.bucket),
		cmp.Compare(id.peer, other.peer),
	)
}
