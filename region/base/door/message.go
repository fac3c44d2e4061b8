package door

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quotad/quotad/region/base/invalid"
)

const (
	// WholeMessage is the field of a problem that concerns no single field.
	WholeMessage = "message"
	// countedFrom is the size in bytes from which the records of a message are counted before it is
	// decoded. A smaller message cannot become large: in memory a field takes at most some 60 times
	// its size on the wire.
	countedFrom = 16 << 10
	// maxNested bounds how deep messages within messages are searched.
	maxNested = 16

	notUTF8 = "is not valid UTF-8; send text, or a hash of what it is not"
)

// codec is gRPC's codec for protobuf with three exceptions. It does not decode into a body, it
// counts answers that are measured, and it takes the memory of answers from buffers.
type codec struct{}

var protobuf = encoding.GetCodecV2(grpcproto.Name)

// Name implements encoding.CodecV2.
func (codec) Name() string { return grpcproto.Name }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	counts, ok := v.(measured)
	if ok {
		v = counts.Message
	}
	m, ok := v.(proto.Message)
	if !ok {
		return protobuf.Marshal(v)
	}
	data, err := encode(m)
	if err == nil && counts.on != nil {
		counts.on.answered(data.Len())
	}
	return data, err
}

// encode encodes a message.
func encode(m proto.Message) (mem.BufferSlice, error) {
	size := proto.Size(m)
	sized := proto.MarshalOptions{UseCachedSize: true}
	if mem.IsBelowBufferPoolingThreshold(size) {
		data, err := sized.Marshal(m)
		return mem.BufferSlice{mem.SliceBuffer(data)}, err
	}
	buffer := buffers.Get(size)
	if _, err := sized.MarshalAppend((*buffer)[:0], m); err != nil {
		buffers.Put(buffer)
		return nil, err
	}
	return mem.BufferSlice{mem.NewBuffer(buffer, buffers)}, nil
}

// measured is an answer that counts as waiting to be written to a connection, from when its length
// is known.
type measured struct {
	proto.Message
	on *conn
}

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*body)
	if !ok {
		return protobuf.Unmarshal(data, v)
	}
	b.free() // that of a second message, which gRPC refuses
	b.buffer = data.MaterializeToBuffer(buffers)
	return nil
}

// buffers are the memory of messages that come and of answers, each at most four times as large as
// what it holds. gRPC's own have no size between 32 KiB and 1 MiB, so that many messages of 40 KiB
// at a time took 25 times as much memory as there is room for.
var buffers = mem.NewTieredBufferPool(256, 1<<10, 4<<10, 16<<10, 32<<10, 64<<10, 128<<10, 256<<10,
	512<<10, 1<<20, 2<<20, 4<<20)

// body is an encoded message.
type body struct{ buffer mem.Buffer }

func (b *body) bytes() []byte {
	if b.buffer == nil {
		return nil
	}
	return b.buffer.ReadOnlyData()
}

func (b *body) free() {
	if b.buffer != nil {
		b.buffer.Free()
		b.buffer = nil
	}
}

// decode decodes a message of at most records fields and entries. It returns what is wrong with the
// message as an *invalid.Field, so that the caller is told that the message is at fault and not the
// server.
func decode(raw []byte, into proto.Message, records int) *invalid.Field {
	if len(raw) > countedFrom {
		left := records
		if countRecords(raw, into.ProtoReflect().Descriptor(), maxNested, &left); left < 0 {
			return invalid.Fieldf(WholeMessage, "has more than %d fields and entries; send less in one call",
				records)
		}
	}
	err := proto.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	proto.Reset(into)
	if bad := notText(raw, into.ProtoReflect().Descriptor(), "", maxNested); bad != nil {
		return bad
	}
	return invalid.Fieldf(WholeMessage, "is no %s in protobuf's encoding",
		into.ProtoReflect().Descriptor().Name())
}

// countRecords subtracts the records of a message from left, including those of messages within it.
// It stops when left is below zero.
func countRecords(raw []byte, of protoreflect.MessageDescriptor, nested int, left *int) {
	eachRecord(raw, of, func(field protoreflect.FieldDescriptor, value []byte) bool {
		*left--
		if field != nil && field.Message() != nil && nested > 0 && *left >= 0 {
			countRecords(value, field.Message(), nested-1, left)
		}
		return *left >= 0
	})
}

// notText returns the first text in a message that is not valid UTF-8, or nil.
func notText(raw []byte, of protoreflect.MessageDescriptor, path string,
	nested int) (bad *invalid.Field) {
	index := map[protoreflect.FieldNumber]int{}
	eachRecord(raw, of, func(field protoreflect.FieldDescriptor, value []byte) bool {
		switch {
		case field == nil:
		case field.Kind() == protoreflect.StringKind:
			if !utf8.Valid(value) {
				bad = &invalid.Field{Within: path, Name: string(field.Name()), Problem: notUTF8}
			}
		case field.IsMap():
			bad = entryNotText(value, field, path)
		case field.Message() != nil && nested > 0:
			within := path + string(field.Name())
			if field.IsList() {
				within += fmt.Sprintf("[%d]", index[field.Number()])
				index[field.Number()]++
			}
			bad = notText(value, field.Message(), within+".", nested-1)
		}
		return bad == nil
	})
	return bad
}

// Mend makes texts valid UTF-8 in messages of the given methods. That is for callers that pass on
// what their own clients write, and that take an error for leave to go on. Call it before services
// are registered.
func (c *Calls) Mend(methods ...string) {
	c.mended = map[string]bool{}
	for _, m := range methods {
		c.mended[m] = true
	}
}

// substitute stands for a byte that is no part of a character, as in ASCII. No header of HTTP can hold
// it, so nobody can write a text that is taken for a mended one.
const substitute = 0x1a

// mended returns a copy of a message in which all texts are valid UTF-8.
func mended(raw []byte, into proto.Message) []byte {
	raw = bytes.Clone(raw)
	mend(raw, into.ProtoReflect().Descriptor(), maxNested)
	return raw
}

// mend mends texts in place.
func mend(raw []byte, of protoreflect.MessageDescriptor, nested int) {
	eachRecord(raw, of, func(field protoreflect.FieldDescriptor, value []byte) bool {
		switch {
		case field == nil:
		case field.Kind() == protoreflect.StringKind:
			for at := 0; at < len(value); {
				r, size := utf8.DecodeRune(value[at:])
				if r == utf8.RuneError && size == 1 {
					value[at] = substitute
				}
				at += size
			}
		case field.Message() != nil && nested > 0:
			mend(value, field.Message(), nested-1)
		}
		return true
	})
}

// entryNotText does the same as notText, for an entry of a map of texts.
func entryNotText(raw []byte, of protoreflect.FieldDescriptor, path string) (bad *invalid.Field) {
	var key, value []byte
	eachRecord(raw, of.Message(), func(field protoreflect.FieldDescriptor, text []byte) bool {
		if field != nil && field.Kind() == protoreflect.StringKind {
			if field.Number() == of.MapKey().Number() {
				key = text
			} else {
				value = text
			}
		}
		return true
	})
	switch {
	case !utf8.Valid(key):
		return &invalid.Field{Within: path, Name: string(of.Name()),
			Problem: "has a name that is not valid UTF-8; send text"}
	case !utf8.Valid(value):
		return &invalid.Field{Within: path, Name: string(of.Name()) + "." + string(key), Problem: notUTF8}
	}
	return nil
}

// eachRecord calls f with each record of a message until f returns false. The field is nil if it is
// unknown. The value is given if the record has a length. A record that cannot be read ends the
// iteration.
func eachRecord(raw []byte, of protoreflect.MessageDescriptor, f func(protoreflect.FieldDescriptor,
	[]byte) bool) {
	for len(raw) > 0 {
		number, kind, n := protowire.ConsumeTag(raw)
		if n < 0 {
			return
		}
		raw = raw[n:]
		if n = protowire.ConsumeFieldValue(number, kind, raw); n < 0 {
			return
		}
		field := of.Fields().ByNumber(number)
		var value []byte
		if kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(raw)
		} else if field != nil && (field.Message() != nil ||
			field.Kind() == protoreflect.StringKind) {
			// A field in another wire type is unknown, to the decoder as well.
			field = nil
		}
		if !f(field, value) {
			return
		}
		raw = raw[n:]
	}
}
