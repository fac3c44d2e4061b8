package gossip

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func withChecksum(b []byte) []byte {
	head := binary.BigEndian.AppendUint32([]byte{frameChecksum}, crc32.ChecksumIEEE(b))
	return append(head, b...)
}

// FuzzCheckPacket: whatever a packet holds, it is read or refused.
func FuzzCheckPacket(f *testing.F) {
	f.Add(killer())
	f.Add(withChecksum(killer()))
	f.Add([]byte{frameCompound, 2, 0, 1, 0, 2, frameUser, framePing, 0x80})
	f.Add(append([]byte{frameAlive}, record(field{"Node", blob([]byte("us/n1"))},
		field{"Incarnation", num(7)})...))
	f.Fuzz(func(t *testing.T, b []byte) {
		err := checkPacket(b)
		if err == nil && len(b) == 0 {
			t.Error("nothing at all was taken for a packet")
		}
		if err != nil && !errors.Is(err, errMalformed) && !errors.Is(err, errCompressed) {
			t.Errorf("refused with %v", err)
		}
	})
}

// FuzzCheckStream: whatever a stream holds, it is read or refused, and never more of it than there
// is.
func FuzzCheckStream(f *testing.F) {
	f.Add(append([]byte{framePushPull},
		append(record(field{"Nodes", num(1)}, field{"UserStateLen", num(2)}),
			append(record(), 'x', 'y')...)...), false)
	f.Add(append([]byte{framePing}, record(field{"Node", blob([]byte("a"))})...), false)
	f.Add(append([]byte{frameError}, record(field{"Error", blob([]byte("a"))})...), true)
	f.Add([]byte{frameCompressed, 0x80}, true)
	f.Fuzz(func(t *testing.T, b []byte, answer bool) {
		s := &bytesSource{b}
		err := checkStream(s, answer)
		if err != nil && !errors.Is(err, errMalformed) && !errors.Is(err, errCompressed) &&
			!errors.Is(err, errTooLarge) {
			t.Errorf("refused with %v", err)
		}
		if read := len(b) - len(s.rest); err == nil && read == 0 {
			t.Error("nothing at all was taken for a question")
		}
	})
}

// FuzzOpenPacket: with keys, what nobody sealed is refused, whatever it holds.
func FuzzOpenPacket(f *testing.F) {
	ring, err := newRing(keys(aKey(1)))
	suite.Must(f, err)
	f.Add(sealed(aKey(2), killer(), true))
	f.Add([]byte{frameLabel, 1, 'q', sealVersion})
	f.Add([]byte{frameLabel, 255})
	f.Fuzz(func(t *testing.T, b []byte) {
		if _, err := (seal{ring}).openPacket(b); err == nil {
			t.Error("opened what was not sealed")
		}
		_, _ = seal{}.openPacket(b)
		_ = seal{ring}.checkStream(&bytesSource{b}, false)
	})
}

// TestWhatNodesSendIsTaken: in a cluster that forms, loses a node, changes keys and exchanges
// states nothing is refused.
func TestWhatNodesSendIsTaken(t *testing.T) {
	for name, key := range map[string][]byte{"plain": nil, "encrypted": aKey(1)} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				network := newNetwork(t)
				var nodes []*node
				for _, name := range []string{"a", "b", "c"} {
					nodes = append(nodes, start(t, network, name, func(c *Config) {
						seeds(network, "a")(c)
						c.Keys = keys(key)
					}))
				}
				within(t, 15*time.Second, "the cluster to form",
					func() error { return sameView(nodes, "a", "b", "c") })
				nodes[0].spread(t, "x", 1)
				time.Sleep(30 * time.Second)
				if err := nodes[2].Leave(t.Context()); err != nil {
					t.Fatal(err)
				}
				nodes[2].Close()
				network.CutBoth("a", "b", 20*time.Second)
				time.Sleep(time.Minute)
				for _, n := range nodes[:2] {
					if s := n.Stats(); s.Compressed+s.Malformed+s.TooLarge+s.Unsealed+s.Crowded+
						s.StreamsRefused != 0 {
						t.Errorf("%s refused something: %+v", n.cfg.Name, s)
					}
				}
				if err := sameView(nodes[:2], "a", "b"); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

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
