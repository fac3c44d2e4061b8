package asjson

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// leftOut names the fields that cannot be absent, or are not optional for callers over gRPC, and are
// left out if they are empty.
var leftOut = map[protoreflect.FullName]bool{
	"quotad.v1.BucketInRegion.envoys":  true,
	"quotad.v1.HeldLimit.match":        true,
	"quotad.v1.OverviewResponse.loads": true,
	"quotad.v1.Settled.reason":         true,
}

// Member returns the name of a field's member, and whether each object has it.
func Member(f protoreflect.FieldDescriptor) (name string, always bool) {
	name = string(f.Name())
	if f.Message() != nil && f.Message().FullName() == "google.protobuf.Duration" {
		name += "_ms"
	}
	return name, !f.HasPresence() && !leftOut[f.FullName()]
}

// Some returns nil for a value that means that there is none.
func Some[T comparable](v T) *T {
	var none T
	if v == none {
		return nil
	}
	return &v
}

// Marshal returns the JSON of a message.
func Marshal(m proto.Message) []byte { return appendObject(nil, m.ProtoReflect()) }

func appendObject(b []byte, m protoreflect.Message) []byte {
	b = append(b, '{')
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name, always := Member(f)
		if always || m.Has(f) {
			b = appendField(appendName(b, name), f, m.Get(f))
		}
	}
	return append(b, '}')
}

// appendName appends what stands before a value in an object.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(appendPlain(b, name), ':')
}

func appendField(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch {
	case f.IsList():
		b = append(b, '[')
		for i := range v.List().Len() {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, f, v.List().Get(i))
		}
		return append(b, ']')
	case f.IsMap():
		all := map[string]protoreflect.Value{}
		v.Map().Range(func(key protoreflect.MapKey, value protoreflect.Value) bool {
			all[key.String()] = value
			return true
		})
		b = append(b, '{')
		for _, key := range slices.Sorted(maps.Keys(all)) {
			b = appendValue(appendName(b, key), f.MapValue(), all[key])
		}
		return append(b, '}')
	}
	return appendValue(b, f, v)
}

func appendValue(b []byte, f protoreflect.FieldDescriptor, v protoreflect.Value) []byte {
	switch f.Kind() {
	case protoreflect.EnumKind:
		return appendPlain(b, enumWord(f.Enum(), v.Enum()))
	case protoreflect.MessageKind:
		switch m := v.Message().Interface().(type) {
		case *timestamppb.Timestamp:
			return m.AsTime().AppendFormat(b, `"`+time.RFC3339Nano+`"`)
		case *durationpb.Duration:
			return appendPlain(b, Milliseconds(m.AsDuration()))
		}
		return appendObject(b, v.Message())
	}
	return appendPlain(b, v.Interface())
}

// appendPlain appends a text, a truth value or a number.
func appendPlain(b []byte, v any) []byte {
	text, _ := json.Marshal(v) // never fails for these
	return append(b, text...)
}

// enumWord returns the word for a value of an enum: within_limit for REASON_WITHIN_LIMIT. It is empty for 0, which
// stands for none, and for values that the enum does not have.
func enumWord(e protoreflect.EnumDescriptor, number protoreflect.EnumNumber) string {
	value := e.Values().ByNumber(number)
	if value == nil || number == 0 {
		return ""
	}
	return strings.TrimPrefix(strings.ToLower(string(value.Name())), strings.ToLower(string(e.Name()))+"_")
}

// Word returns the word for a value of an enum.
func Word(e protoreflect.Enum) string { return enumWord(e.Descriptor(), e.Number()) }
