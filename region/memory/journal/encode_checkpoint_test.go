package journal

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func TestCheckpointsEncodeAndDecode(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		c := drawCheckpoint.Draw(t, "checkpoint")
		key := checkpointKey(c.id())
		got, err := decodeCheckpoint(key, seal(key, checkpointBody(c)))
		if err != nil || got != c {
			t.Fatalf("%v decodes as %v, %v", c, got, err)
		}
		if until, err := untilOf(seal(key, checkpointBody(c))); until != c.Until || err != nil {
			t.Fatalf("%v ends at %d, %v", c, until, err)
		}
	})
}

func TestCheckpointKeysOrderByBucket(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a, b := drawCheckpoint.Draw(t, "a"), drawCheckpoint.Draw(t, "b")
		if got, want := bytes.Compare(checkpointKey(a.id()), checkpointKey(b.id())),
			a.id().compare(b.id()); got != want {
			t.Fatalf("keys compare as %d, checkpoints as %d", got, want)
		}
		if got := bytes.HasPrefix(checkpointKey(a.id()),
			bucketPrefix(b.Bucket)); got != (a.Bucket == b.Bucket) {
			t.Fatalf("the key of %q has the prefix of %q: %v", a.Bucket, b.Bucket, got)
		}
	})
}

// TestCheckpointBodyHasEveryNumber writes the encoding out: each number has its place, and none but
// these is accepted.
func TestCheckpointBodyHasEveryNumber(t *testing.T) {
	c := Checkpoint{Bucket: "b", Cell: 3, Used: 1, At: 2, Generation: 4, Until: -5}
	key, body := checkpointKey(c.id()), checkpointBody(c)
	if want := []byte{0, 1, 'b', 0x80, 0, 0, 0, 0, 0, 0, 3}; !bytes.Equal(key, want) {
		t.Fatalf("key %v, want %v: length of bucket, bucket, cell", key, want)
	}
	if want := []byte{1, 1, 4, 4, 9}; !bytes.Equal(body, want) {
		t.Fatalf("body %v, want %v: format, used, at, generation, until", body, want)
	}
	huge := []byte{0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x04} // 2^51 + 1
	for says, forged := range map[string][]byte{
		"used is 2251799813685249": slices.Concat(body[:1], huge, body[2:]),
		"cut short":                body[:4],
		"left over":                append(bytes.Clone(body), 0),
		"format 2":                 slices.Concat([]byte{2}, body[1:]),
	} {
		if _, err := decodeCheckpoint(key, seal(key, forged)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%v = %v, want %q", forged, err, says)
		}
	}
	for says, forged := range map[string][]byte{
		"cut short":  key[:len(key)-1],
		"left over":  append(bytes.Clone(key), 0),
		"has 0 byte": slices.Concat([]byte{0, 0}, key[3:]),
	} {
		if _, err := decodeCheckpoint(forged, seal(forged, body)); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("key %v = %v, want %q", forged, err, says)
		}
	}
}

// FuzzDecodeCheckpoint feeds the decoder raw values, and bodies under a good
// seal so that it is reached beyond the checksum.
func FuzzDecodeCheckpoint(f *testing.F) {
	for _, c := range []Checkpoint{{Bucket: "b", Cell: 3, Used: 1, At: 2, Until: -1, Generation: 4},
		{Bucket: "\x00", Cell: -1, Used: MaxUnits, At: -1}} {
		f.Add(checkpointKey(c.id()), checkpointBody(c))
	}
	f.Add([]byte{}, []byte{})
	f.Add(make([]byte, 10), []byte{checkpointFormat, 0x80, 0})
	f.Fuzz(func(t *testing.T, key, body []byte) {
		if _, err := decodeCheckpoint(key, body); err == nil {
			t.Log("the fuzzer found a checksum")
		}
		c, err := decodeCheckpoint(key, seal(key, body))
		if err != nil {
			return
		}
		if err := c.validate(); err != nil {
			t.Fatalf("decoded a checkpoint that may not be made: %v", err)
		}
		if !bytes.Equal(checkpointKey(c.id()), key) || !bytes.Equal(checkpointBody(c), body) {
			t.Fatalf("%v has a second encoding: key %x, body %x", c, key, body)
		}
	})
}

// FuzzUntilOf has any bytes end as what a decoder reads of them ends.
func FuzzUntilOf(f *testing.F) {
	row, checkpoint := rowKey(kept.id()), checkpointKey(checkpointID{"b", 1})
	f.Add(rowBody(kept))
	f.Add(checkpointBody(Checkpoint{Used: 300, At: -1, Until: math.MinInt64}))
	f.Add([]byte{})
	f.Add([]byte{checkpointFormat, 0x80})
	f.Fuzz(func(t *testing.T, body []byte) {
		until, err := untilOf(seal(nil, body))
		if r, bad := decodeRow(row, seal(row, body)); bad == nil && (err != nil || until != r.Until) {
			t.Fatalf("%v ends at %d, %v", r, until, err)
		}
		if c, bad := decodeCheckpoint(checkpoint, seal(checkpoint, body)); bad == nil && (err != nil || until != c.Until) {
			t.Fatalf("%v ends at %d, %v", c, until, err)
		}
		if _, err := untilOf(body); err == nil && len(body) < sealBytes+2 {
			t.Fatalf("%x has an end", body)
		}
	})
}

func FuzzDecodeTotals(f *testing.F) {
	f.Add(encodeTotals(totals{}))
	f.Add(encodeTotals(totals{rows: tally{1, 1 << 63}, checkpoints: tally{2, 3}, sequence: 4}))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := decoder{rest: body}
		var got totals
		got.read(&d)
		if d.finish() == nil && !bytes.Equal(encodeTotals(got), body) {
			t.Fatalf("%+v has a second encoding: %x", got, body)
		}
	})
}

// compare orders checkpoints as the file does: by bucket, a shorter id before a
// longer one, and cell.
func (id checkpointID) compare(other checkpointID) int {
	return cmp.Or(
		cmp.Compare(len(id.bucket), len(other.bucket)),
		cmp.Compare(id.bucket, other.bucket),
		cmp.Compare(id.cell, other.cell),
	)
}
