package door

import (
	"fmt"
	"unicode/utf8"

	"google.golang.org/grpc/encoding"
	grpcproto "google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	// WholeMessage is the field of a problem that concerns no single one.
	WholeMessage = "message"
	// countedFrom is the size from which a message is counted before it is decoded. A smaller one cannot become much: in
	// memory a field takes at most some 60 times what it may on the wire.
	countedFrom = 16 << 10
	// maxNested bounds messages within messages when they are looked through.
	maxNested = 16

	notUTF8 = "is not valid UTF-8; send text, or a hash of what it is not"
)

// codec is gRPC's own for protobuf, but for a body, which it leaves as it came.
type codec struct{}

var protobuf = encoding.GetCodecV2(grpcproto.Name)

// Name implements encoding.CodecV2.
func (codec) Name() string { return grpcproto.Name }

// Marshal implements encoding.CodecV2.
func (codec) Marshal(v any) (mem.BufferSlice, error) { return protobuf.Marshal(v) }

// Unmarshal implements encoding.CodecV2.
func (codec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*body)
	if !ok {
		return protobuf.Unmarshal(data, v)
	}
	b.free() // of a second message, which gRPC refuses
	b.buffer = data.MaterializeToBuffer(mem.DefaultBufferPool())
	return nil
}

// body is a message as it came.
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

// decode reads a message of at most so many records. What is wrong with it is not an error of ours, which gRPC would say.
func decode(raw []byte, into proto.Message, records int) *BadField {
	if len(raw) > countedFrom {
		left := records
		if countRecords(raw, into.ProtoReflect().Descriptor(), maxNested, &left); left < 0 {
			return &BadField{Field: WholeMessage, Problem: fmt.Sprintf("has more than %d fields and entries; send less in one call", records)}
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
	return &BadField{Field: WholeMessage, Problem: fmt.Sprintf("is no %s in protobuf's encoding", into.ProtoReflect().Descriptor().Name())}
}

// countRecords takes the records of a message off left, those of messages within it included, and stops below zero.
func countRecords(raw []byte, of protoreflect.MessageDescriptor, nested int, left *int) {
	eachRecord(raw, of, func(field protoreflect.FieldDescriptor, value []byte) bool {
		*left--
		if field != nil && field.Message() != nil && nested > 0 && *left >= 0 {
			countRecords(value, field.Message(), nested-1, left)
		}
		return *left >= 0
	})
}

// notText finds the first text in a message that is not valid UTF-8; nil if there is none.
func notText(raw []byte, of protoreflect.MessageDescriptor, path string, nested int) (bad *BadField) {
	index := map[protoreflect.FieldNumber]int{}
	eachRecord(raw, of, func(field protoreflect.FieldDescriptor, value []byte) bool {
		switch {
		case field == nil:
		case field.Kind() == protoreflect.StringKind:
			if !utf8.Valid(value) {
				bad = &BadField{Path: path, Field: string(field.Name()), Problem: notUTF8}
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

// entryNotText is notText for an entry of a map of texts.
func entryNotText(raw []byte, of protoreflect.FieldDescriptor, path string) (bad *BadField) {
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
		return &BadField{Path: path, Field: string(of.Name()), Problem: "has a name that is not valid UTF-8; send text"}
	case !utf8.Valid(value):
		return &BadField{Path: path, Field: string(of.Name()) + "." + string(key), Problem: notUTF8}
	}
	return nil
}

// eachRecord calls f with each record of a message until it returns false: with its field, nil if that is unknown, and, where
// it has a length, with its value. What cannot be read ends it.
func eachRecord(raw []byte, of protoreflect.MessageDescriptor, f func(protoreflect.FieldDescriptor, []byte) bool) {
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
		} else if field != nil && (field.Message() != nil || field.Kind() == protoreflect.StringKind) {
			field = nil // not as the field is written: unknown, as for the decoder
		}
		if !f(field, value) {
			return
		}
		raw = raw[n:]
	}
}
