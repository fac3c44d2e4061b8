package gossip

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
)

// memberlist trusts the lengths in the bytes that it receives, and inflates compressed frames: 31
// kB become 40 MiB, 20 bytes that announce a million members take 100 MB, and nested lists exhaust
// the stack. No node of quotad ever sends such frames. So this package checks every frame first,
// and memberlist sees only frames of the kinds that it makes itself.

// The first byte of a frame of memberlist. The numbers are memberlist's protocol.
const (
	framePing         = 0
	frameIndirectPing = 1
	frameAck          = 2
	frameSuspect      = 3
	frameAlive        = 4
	frameDead         = 5
	framePushPull     = 6
	frameCompound     = 7
	frameUser         = 8
	frameCompressed   = 9
	frameEncrypted    = 10
	frameNack         = 11
	frameChecksum     = 12
	frameError        = 13
	frameLabel        = 244
)

const (
	// maxFields bounds the fields of one record; the largest of memberlist's has 7.
	maxFields = 16
	// maxField bounds one field, in bytes. The largest is the meta data of a member.
	maxField = 1024
	// maxStateMembers bounds the members that one whole state names; a state with more is refused.
	maxStateMembers = 2048
	// maxUserState bounds the caller's part of a whole state, in bytes. A larger one is refused. It
	// is twice what is sent, so that nodes of another version are understood.
	maxUserState = 2 * MaxState
	// maxStream bounds all that one stream brings, in bytes: members, the caller's part, and the
	// encryption.
	maxStream = maxUserState + 2<<20
)

// The reasons why a frame is refused.
var (
	errCompressed = errors.New("the frame is compressed, which no node does")
	errMalformed  = errors.New("the frame is none that a node sends")
	errTooLarge   = errors.New("the frame is too large")
	errUnsealed   = errors.New("no key opens the frame, or it has a label")
)

// source yields bytes in order: of a packet, or of a stream as they arrive.
type source interface {
	// take returns the next n bytes. They are valid until the next call.
	take(n int) ([]byte, error)
}

// bytesSource yields the bytes of a slice.
type bytesSource struct{ rest []byte }

func (s *bytesSource) take(n int) ([]byte, error) {
	if n < 0 || n > len(s.rest) {
		return nil, fmt.Errorf("%w: it ends early", errMalformed)
	}
	b := s.rest[:n]
	s.rest = s.rest[n:]
	return b, nil
}

// checkPacket checks the plain text of a packet.
func checkPacket(b []byte) error {
	if len(b) >= 5 && b[0] == frameChecksum {
		if crc32.ChecksumIEEE(b[5:]) != binary.BigEndian.Uint32(b[1:5]) {
			return fmt.Errorf("%w: its checksum is wrong", errMalformed)
		}
		b = b[5:]
	}
	if len(b) > 0 && b[0] == frameCompound {
		return checkCompound(b[1:])
	}
	return checkMessage(b)
}

// checkCompound checks the messages that share a packet. None of them may be compound itself.
func checkCompound(b []byte) error {
	s := &bytesSource{b}
	n, err := s.take(1)
	if err != nil {
		return err
	}
	lengths, err := s.take(2 * int(n[0]))
	if err != nil {
		return err
	}
	for ; len(lengths) > 0; lengths = lengths[2:] {
		message, err := s.take(int(binary.BigEndian.Uint16(lengths)))
		if err != nil {
			return err
		}
		if err := checkMessage(message); err != nil {
			return err
		}
	}
	return nil
}

// checkMessage checks one message of a packet.
func checkMessage(b []byte) error {
	if len(b) == 0 {
		return fmt.Errorf("%w: it is empty", errMalformed)
	}
	switch b[0] {
	case frameUser:
		return nil // decode checks it
	case framePing, frameIndirectPing, frameAck, frameNack, frameSuspect, frameAlive, frameDead:
		_, err := checkRecord(&bytesSource{b[1:]})
		return err
	case frameCompressed:
		return errCompressed
	}
	return fmt.Errorf("%w: no packet has type %d", errMalformed, b[0])
}

// checkStream checks the plain text of what one side sends on a stream: an answer on streams that
// this node opened, otherwise a question.
func checkStream(s source, answer bool) error {
	kind, err := s.take(1)
	if err != nil {
		return err
	}
	switch k := kind[0]; {
	case k == frameCompressed:
		return errCompressed
	case k == framePushPull:
		return checkState(s)
	case k == framePing && !answer, (k == frameAck || k == frameError) && answer:
		_, err := checkRecord(s)
		return err
	default:
		return fmt.Errorf("%w: no stream has type %d", errMalformed, k)
	}
}

// checkState checks a whole state: the numbers of members and bytes, the members, the bytes.
func checkState(s source) error {
	counts, err := checkRecord(s)
	if err != nil {
		return err
	}
	if counts.nodes > maxStateMembers || counts.state > maxUserState {
		return fmt.Errorf("%w: a state of %d members and %d bytes",
			errTooLarge, counts.nodes, counts.state)
	}
	for range counts.nodes {
		if _, err := checkRecord(s); err != nil {
			return err
		}
	}
	_, err = s.take(int(counts.state))
	return err
}

// counts holds the fields of a record that say how much follows it: members, and bytes of the
// caller's state.
type counts struct{ nodes, state uint64 }

// checkRecord checks one record: a MessagePack map from names to numbers, booleans and strings.
// Lists and maps within it are refused.
func checkRecord(s source) (counts, error) {
	var c counts
	n, err := mapLength(s)
	if err != nil {
		return c, err
	}
	for range n {
		key, _, isText, err := scalar(s)
		if err != nil {
			return c, err
		}
		if !isText {
			return c, fmt.Errorf("%w: a field without a name", errMalformed)
		}
		nodes := strings.EqualFold(key, "Nodes")
		state := strings.EqualFold(key, "UserStateLen")
		_, number, _, err := scalar(s)
		if err != nil {
			return c, err
		}
		if nodes { // if the field comes twice, the larger counts
			c.nodes = max(c.nodes, number)
		}
		if state {
			c.state = max(c.state, number)
		}
	}
	return c, nil
}

// mapLength reads the number of fields of a record.
func mapLength(s source) (int, error) {
	head, err := s.take(1)
	if err != nil {
		return 0, err
	}
	n := uint64(head[0] & 0x0f)
	switch {
	case head[0]&0xf0 == 0x80:
	case head[0] == 0xde:
		n, err = number(s, 2)
	case head[0] == 0xdf:
		n, err = number(s, 4)
	default:
		return 0, fmt.Errorf("%w: %#x does not begin a record", errMalformed, head[0])
	}
	if err == nil && n > maxFields {
		err = fmt.Errorf("%w: a record of %d fields", errMalformed, n)
	}
	return int(n), err
}

// scalar reads a name, a string or a number. For a negative number it returns one that is too large
// to be accepted anywhere.
func scalar(s source) (text string, value uint64, isText bool, err error) {
	head, err := s.take(1)
	if err != nil {
		return "", 0, false, err
	}
	switch h := head[0]; {
	case h < 0x80: // a small number
		return "", uint64(h), false, nil
	case h >= 0xe0: // a small negative number
		return "", 1 << 63, false, nil
	case h >= 0xa0 && h < 0xc0: // a short string
		text, err = str(s, uint64(h&0x1f), nil)
		return text, 0, true, err
	case h == 0xc0, h == 0xc2, h == 0xc3: // nothing, false, true
		return "", 0, false, nil
	case h >= 0xc4 && h <= 0xc6: // bytes
		n, err := number(s, 1<<(h-0xc4))
		text, err = str(s, n, err)
		return text, 0, true, err
	case h >= 0xd9 && h <= 0xdb: // a string
		n, err := number(s, 1<<(h-0xd9))
		text, err = str(s, n, err)
		return text, 0, true, err
	case h >= 0xcc && h <= 0xcf: // a number without a sign
		value, err = number(s, 1<<(h-0xcc))
		return "", value, false, err
	case h >= 0xd0 && h <= 0xd3: // a number with a sign
		size := 1 << (h - 0xd0)
		if value, err = number(s, size); err == nil && value>>(8*size-1) != 0 {
			value = 1 << 63
		}
		return "", value, false, err
	default:
		return "", 0, false, fmt.Errorf("%w: a field that begins with %#x", errMalformed, h)
	}
}

// number reads a big-endian number of the given size in bytes.
func number(s source, size int) (uint64, error) {
	b, err := s.take(size)
	if err != nil {
		return 0, err
	}
	var v uint64
	for _, x := range b {
		v = v<<8 | uint64(x)
	}
	return v, nil
}

// str reads a string of n bytes, unless err is set.
func str(s source, n uint64, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if n > maxField {
		return "", fmt.Errorf("%w: a field of %d bytes", errMalformed, n)
	}
	b, err := s.take(int(n))
	return string(b), err
}
