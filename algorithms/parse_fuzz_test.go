//go:build !race

package algorithms

import (
	"encoding/binary"
	"testing"

	"github.com/quotad/quotad/quantity"
)

// replyOf makes a script's reply from bytes: numbers, strings, and values that no script returns.
func replyOf(b []byte) any {
	flat := []any{}
	for len(b) > 0 {
		kind := b[0]
		b = b[1:]
		switch n := int(kind >> 3); kind & 7 {
		case 0: // a small number
			flat = append(flat, int64(n)-2)
		case 1: // any number
			var v [8]byte
			b = b[copy(v[:], b):]
			flat = append(flat, int64(binary.LittleEndian.Uint64(v[:])))
		case 2: // a string
			n = min(n, len(b))
			flat = append(flat, string(b[:n]))
			b = b[n:]
		case 3:
			flat = append(flat, nil)
		case 4:
			flat = append(flat, []any{})
		default: // what most replies are made of
			for range n {
				flat = append(flat, int64(kind))
			}
		}
	}
	return flat
}

// FuzzParse: any answer of a store to a script is parsed or refused, and a parsed one has as many
// buckets and costs as were asked for.
func FuzzParse(f *testing.F) {
	f.Add([]byte{0x18})                               // a status alone
	f.Add([]byte{0x10, 0x10, 0x08, 0xf5, 0x08, 0xf5}) // 0, 0, and rows of ones
	f.Add([]byte{0x18, 0x0a, '1', 0x0a, '2', 0x0a, '3', 0x0a, '4', 0x0a, '5', 0x0a, '6', 0x0a, '7',
		0x0a, '8'})
	f.Fuzz(func(t *testing.T, b []byte) {
		reply := replyOf(b)
		var decide Items
		for range 2 {
			decide.Add(Decide{Commit: true, Buckets: make([]LimitTarget, 2),
				Costs: []quantity.Units{1, 2, 3}})
		}
		if all, err := decide.Parse(reply); err == nil {
			for _, d := range all.Each {
				if d.Status == StatusOK && (len(d.Buckets) != 2 || len(d.Answers) != 3) {
					t.Errorf("%d buckets, %d answers", len(d.Buckets), len(d.Answers))
				}
			}
		}
		refund := Settle{Charges: make([]Charge, 2)}
		if r, err := refund.Parse(reply); err == nil && r.Status == StatusOK &&
			len(r.Charges) != 2 {
			t.Errorf("%d charges", len(r.Charges))
		}
		_, _ = Lend{}.Parse(reply)
		_, _ = Credit{}.Parse(reply)
		_, _ = Inspect{}.Parse(reply)
		_, _ = Restore{}.Parse(reply)
		_, _ = Recall{}.Parse(reply)
		_, _ = Book{}.Parse(reply)
		_, _ = Reset{}.Parse(reply)
		_, _ = Adopt{}.Parse(reply)
		_, _ = Note{}.Parse(reply)
		_, _ = Nodes{}.Parse(reply)
		_, _ = Open{}.Parse(reply)
		for _, odd := range []any{nil, int64(1), "text", []any{[]any{}}} {
			if _, err := decide.Parse(odd); err == nil {
				t.Errorf("%v was taken for a reply", odd)
			}
		}
	})
}
