package gossip

import (
	"errors"
	"fmt"
)

// MaxBroadcast is the largest change that Broadcast takes, its key and its bytes together, in
// bytes. It leaves room for encryption and framing in a packet that is not fragmented.
const MaxBroadcast = 1024

// MaxState is the largest whole state that is sent, in bytes. A larger one is not exchanged at all,
// so a State must leave out what does not fit.
const MaxState = 4 << 20

// ErrTooLarge is what Broadcast returns for a change beyond MaxBroadcast. The change still spreads
// as part of the whole state.
var ErrTooLarge = errors.New(
	"gossip: change too large for a packet; it spreads with the whole state instead")

// maxKey is the longest key: its length travels in one byte.
const maxKey = 255

// The first byte of a message is its kind. The numbers are the protocol.
const (
	kindChange  = 1 // length of the key in one byte, key, change
	kindGoodbye = 2 // name of the member that leaves
)

// encodeChange frames a change for the wire. The key is part of it, so that a node that passes
// changes on can drop outdated ones from its queue too.
func encodeChange(key string, b []byte) ([]byte, error) {
	if key == "" || len(key) > maxKey {
		return nil, fmt.Errorf("gossip: key %q has %d bytes, want 1 to %d", key, len(key), maxKey)
	}
	if len(key)+len(b) > MaxBroadcast {
		return nil, fmt.Errorf("%w: key %q and change have %d bytes, at most %d fit", ErrTooLarge,
			key, len(key)+len(b), MaxBroadcast)
	}
	m := make([]byte, 0, 2+len(key)+len(b))
	m = append(m, kindChange, byte(len(key)))
	m = append(m, key...)
	return append(m, b...), nil
}

// encodeGoodbye frames a goodbye for the wire.
func encodeGoodbye(name string) []byte { return append([]byte{kindGoodbye}, name...) }

// message is a message that has arrived.
type message struct {
	kind   byte
	name   string // key of a change, name of a member
	change []byte // shares the memory of what was decoded
}

// decode reads a message from the wire, which may be anything.
func decode(b []byte) (message, error) {
	if len(b) == 0 {
		return message{}, errors.New("empty message")
	}
	kind, b := b[0], b[1:]
	switch kind {
	case kindChange:
		if len(b) == 0 || b[0] == 0 || len(b) < 1+int(b[0]) {
			return message{}, errors.New("change without a whole key")
		}
		end := 1 + int(b[0]) // as an int: in a byte, 255 + 1 would be 0
		key, change := b[1:end], b[end:]
		if len(key)+len(change) > MaxBroadcast {
			return message{}, fmt.Errorf("change of %d bytes, at most %d are allowed",
				len(key)+len(change), MaxBroadcast)
		}
		return message{kind, string(key), change}, nil
	case kindGoodbye:
		if len(b) == 0 || len(b) > maxName {
			return message{}, fmt.Errorf("goodbye from a name of %d bytes", len(b))
		}
		return message{kind: kind, name: string(b)}, nil
	}
	return message{}, fmt.Errorf("message of unknown kind %d", kind)
}
