package gossip

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestEncodeChangeRefuses(t *testing.T) {
	for _, tc := range []struct {
		name, key string
		size      int
		ok, large bool
	}{
		{"smallest", "k", 0, true, false},
		{"largest", "key", MaxBroadcast - 3, true, false},
		{"too large", "key", MaxBroadcast - 2, false, true},
		{"no key", "", 1, false, false},
		{"longest key", strings.Repeat("k", maxKey), 1, true, false},
		{"key too long", strings.Repeat("k", maxKey+1), 1, false, false},
	} {
		_, err := encodeChange(tc.key, make([]byte, tc.size))
		if (err == nil) != tc.ok || errors.Is(err, ErrTooLarge) != tc.large {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	change, _ := encodeChange("key", []byte("change"))
	f.Add(change)
	f.Add(encodeGoodbye("us-east/n1"))
	f.Add([]byte{})
	f.Add([]byte{kindChange})
	f.Add([]byte{kindChange, 0, 1})
	f.Add([]byte{kindChange, 255, 'k'})
	f.Add([]byte{kindGoodbye})
	f.Add([]byte{99})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decode(b)
		if err != nil {
			return
		}
		again := encodeGoodbye(m.name)
		if m.kind == kindChange {
			if again, err = encodeChange(m.name, m.change); err != nil {
				t.Fatalf("decoded what cannot be encoded: %v", err)
			}
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b, m, again)
		}
	})
}
