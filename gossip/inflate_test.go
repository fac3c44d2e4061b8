package gossip

import (
	"bytes"
	"compress/lzw"
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// field is the name and the value of one field of a record.
type field struct {
	name  string
	value []byte // as MessagePack
}

// record is a map of MessagePack.
func record(fields ...field) []byte {
	b := []byte{0x80 | byte(len(fields))}
	for _, f := range fields {
		b = append(b, 0xa0|byte(len(f.name)))
		b = append(append(b, f.name...), f.value...)
	}
	return b
}

func num(v uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0xce}, v) }

// blob is a string of some length, of MessagePack.
func blob(b []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0xdb}, uint32(len(b))), b...)
}

// inflating is a compressed frame of about 31 kB that becomes 40 MiB.
func inflating() []byte {
	var b bytes.Buffer
	w := lzw.NewWriter(&b, lzw.LSB, 8)
	_, _ = w.Write(make([]byte, 40<<20))
	_ = w.Close()
	return append([]byte{frameCompressed}, record(field{"Algo", []byte{0}},
		field{"Buf", blob(b.Bytes())})...)
}

// sealed is a frame as a holder of the key sends it on a stream, or as a packet; without a key it
// is the frame itself.
func sealed(key, plain []byte, packet bool) []byte {
	if key == nil {
		return plain
	}
	block, _ := aes.NewCipher(key)
	gcm, _ := cipher.NewGCM(block)
	nonce := make([]byte, nonceSize)
	var head []byte
	if !packet {
		head = binary.BigEndian.AppendUint32([]byte{frameEncrypted},
			uint32(1+nonceSize+len(plain)+gcm.Overhead()))
	}
	b := append(append(slices.Clone(head), sealVersion), nonce...)
	return gcm.Seal(b, nonce, plain, head)
}

// pour opens a stream, sends what it is given and waits until it is closed, or for ten seconds.
func pour(t *testing.T, from *network.Host, to *node, b []byte) {
	c, err := from.DialContext(t.Context(), "tcp", to.cfg.Advertise.String())
	if err != nil {
		return
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Write(b); err == nil {
		_, _ = c.Read(make([]byte, 1))
	}
}

// plainAndEncrypted runs a test in a cluster of one without keys, and of one with them.
func plainAndEncrypted(t *testing.T, f func(t *testing.T, network *network.Network, a *node,
	key []byte)) {
	for name, key := range map[string][]byte{"plain": nil,
		"encrypted, by a holder of the key": aKey(1)} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				network := newNetwork(t)
				f(t, network, start(t, network, "a", func(c *Config) { c.Keys = keys(key) }), key)
			})
		})
	}
}

// TestNothingIsInflated: there are 64 streams of 31 kB, each of which memberlist would inflate to
// 40 MiB. All are refused, and not one byte of them is passed on.
func TestNothingIsInflated(t *testing.T) {
	frame := inflating()
	if len(frame) > 40<<10 {
		t.Fatalf("the frame has %d bytes", len(frame))
	}
	plainAndEncrypted(t, func(t *testing.T, network *network.Network, a *node, key []byte) {
		const streams = 64
		for range streams {
			go pour(t, network.Host("enemy"), a, sealed(key, frame, false))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if got := a.Stats().Compressed; got != streams {
			t.Errorf("%d frames were refused, want %d", got, streams)
		}
		if n := a.transport.handedOn.Load(); n != 0 {
			t.Errorf("%d bytes were handed on", n)
		}
		if open := a.openStreams(); open != 0 || a.transport.held != 0 {
			t.Errorf("%d streams and %d bytes are still held", open, a.transport.held)
		}
	})
}

// TestCompressedPacketsAreRefused: alone, with a checksum, and among others in one packet.
func TestCompressedPacketsAreRefused(t *testing.T) {
	var small bytes.Buffer
	w := lzw.NewWriter(&small, lzw.LSB, 8)
	_, _ = w.Write(make([]byte, 256<<10))
	_ = w.Close()
	frame := append([]byte{frameCompressed}, record(field{"Algo", []byte{0}},
		field{"Buf", blob(small.Bytes())})...)
	compound := append([]byte{frameCompound, 2, 0, 1}, binary.BigEndian.AppendUint16(nil,
		uint16(len(frame)))...)
	compound = append(append(compound, frameUser), frame...)
	plainAndEncrypted(t, func(t *testing.T, network *network.Network, a *node, key []byte) {
		packets, err := network.Host("enemy").ListenPacket(0)
		suite.Must(t, err)
		all := [][]byte{frame, withChecksum(frame), compound, withChecksum(compound)}
		for _, b := range all {
			_, _ = packets.WriteTo(sealed(key, b, true), net.UDPAddrFromAddrPort(a.cfg.Advertise))
		}
		time.Sleep(time.Second)
		if got := a.Stats().Compressed; got != uint64(len(all)) {
			t.Errorf("%d were refused, want %d", got, len(all))
		}
	})
}

// TestFramesThatNobodySends: these frames would make memberlist reserve room for data that never
// comes, recurse into nested lists, or panic.
func TestFramesThatNobodySends(t *testing.T) {
	state := func(nodes, bytes uint32) []byte {
		return append([]byte{framePushPull}, record(field{"Nodes", num(nodes)},
			field{"UserStateLen", num(bytes)}, field{"Join", []byte{0xc3}})...)
	}
	nested := append([]byte{framePing}, record(field{"X", bytes.Repeat([]byte{0x91}, 1<<20)})...)
	for name, c := range map[string]struct {
		frame []byte
		count func(Stats) uint64
	}{
		"a million members announced": {state(1<<20, 0),
			func(s Stats) uint64 { return s.TooLarge }},
		"20 MB of state announced": {state(0, 20<<20),
			func(s Stats) uint64 { return s.TooLarge }},
		"a message of 20 MB announced": {append([]byte{frameUser},
			record(field{"UserMsgLen", num(20 << 20)})...), malformed},
		"lists within lists": {nested, malformed},
		"a name of 4 GB announced": {append([]byte{framePing}, 0x81, 0xdb, 0xff, 0xff, 0xff,
			0xff), malformed},
		"a list instead of a record": {append([]byte{framePushPull}, 0x93, 1, 1, 1), malformed},
		"an answer nobody asked for": {append([]byte{frameError}, record()...), malformed},
		"nothing at all":             {nil, malformed},
	} {
		t.Run(name, func(t *testing.T) {
			plainAndEncrypted(t, func(t *testing.T, network *network.Network, a *node, key []byte) {
				if key == nil && c.frame == nil {
					return // that is an empty stream, which is closed
				}
				before := c.count(a.Stats())
				pour(t, network.Host("enemy"), a, sealed(key, c.frame, false))
				if c.count(a.Stats()) != before+1 || a.transport.handedOn.Load() != 0 {
					t.Errorf("not refused: %+v, %d bytes handed on", a.Stats(),
						a.transport.handedOn.Load())
				}
			})
		})
	}
}

func malformed(s Stats) uint64 { return s.Malformed }

// TestStreamsHoldALimitedNumberOfBytes: whole states of the largest size arrive at the same time
// and never end.
func TestStreamsHoldALimitedNumberOfBytes(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		a := start(t, network, "a", nil)
		b := append([]byte{framePushPull}, record(field{"Nodes", num(0)},
			field{"UserStateLen", num(maxUserState)}, field{"Join", []byte{0xc3}})...)
		b = append(b, make([]byte, maxUserState-1)...)
		for _, host := range []string{"enemy", "foe"} {
			for range 8 {
				go pour(t, network.Host(host), a, b)
			}
		}
		most := 0
		for range 100 {
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
			a.transport.mu.Lock()
			most = max(most, a.transport.held)
			a.transport.mu.Unlock()
		}
		if most > maxHeld || most < maxHeld/2 {
			t.Errorf("up to %d bytes were held, want at most %d", most, maxHeld)
		}
		if a.Stats().Crowded == 0 || a.transport.handedOn.Load() != 0 {
			t.Errorf("%d streams were refused, and %d bytes handed on", a.Stats().Crowded,
				a.transport.handedOn.Load())
		}
		time.Sleep(time.Minute)
		if open := a.openStreams(); open != 0 || a.transport.held != 0 {
			t.Errorf("after a minute %d streams are open, and %d bytes held", open,
				a.transport.held)
		}
		peer := start(t, network, "b", seeds(network, "a"))
		within(t, 10*time.Second, "the cluster to form",
			func() error { return sameView([]*node{a, peer}, "a", "b") })
	})
}

// TestLargestStateIsExchanged: as large as MaxState allows, with keys and without.
func TestLargestStateIsExchanged(t *testing.T) {
	plainAndEncrypted(t, func(t *testing.T, network *network.Network, a *node, key []byte) {
		name := string(bytes.Repeat([]byte{'n'}, MaxState-len(`{"":1}`)))
		a.set(name, 1)
		b := start(t, network, "b", func(c *Config) { seeds(network, "a")(c); c.Keys = keys(key) })
		within(t, 10*time.Second, "the state to arrive", func() error {
			return sameState([]*node{a, b}, map[string]int{name: 1})
		})
	})
}
