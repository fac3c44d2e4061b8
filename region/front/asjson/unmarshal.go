package asjson

import (
	"encoding/json"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Unmarshal reads the JSON of a message. The JSON may be that of another version of quotad: members
// that the message does not have are passed over, and a field whose member is missing is empty.
func Unmarshal(text []byte, m proto.Message) error {
	proto.Reset(m)
	return readObject(text, m.ProtoReflect())
}

func readObject(text []byte, m protoreflect.Message) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		name, _ := Member(f)
		member, given := members[name]
		if !given {
			continue
		}
		v, err := readField(member, f, m.NewField(f))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Set(f, v)
	}
	return nil
}

// readField reads the value of a field. into is an empty one.
func readField(text []byte, f protoreflect.FieldDescriptor, into protoreflect.Value) (protoreflect.Value, error) {
	switch {
	case f.IsList():
		var all []json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			return into, err
		}
		for _, one := range all {
			v, err := readValue(one, f, into.List().NewElement())
			if err != nil {
				return into, err
			}
			into.List().Append(v)
		}
		return into, nil
	case f.IsMap():
		var all map[string]json.RawMessage
		if err := json.Unmarshal(text, &all); err != nil {
			return into, err
		}
		for key, one := range all {
			v, err := readValue(one, f.MapValue(), into.Map().NewValue())
			if err != nil {
				return into, err
			}
			into.Map().Set(protoreflect.ValueOfString(key).MapKey(), v)
		}
		return into, nil
	}
	return readValue(text, f, into)
}

func readValue(text []byte, f protoreflect.FieldDescriptor, into protoreflect.Value) (protoreflect.Value, error) {
	switch f.Kind() {
	case protoreflect.StringKind:
		return readPlain[string](text)
	case protoreflect.BoolKind:
		return readPlain[bool](text)
	case protoreflect.Int64Kind:
		return readPlain[int64](text)
	case protoreflect.Uint64Kind:
		return readPlain[uint64](text)
	case protoreflect.EnumKind:
		var word string
		err := json.Unmarshal(text, &word)
		return protoreflect.ValueOfEnum(enumNumber(f.Enum(), word)), err
	case protoreflect.MessageKind:
		switch into.Message().Interface().(type) {
		case *timestamppb.Timestamp:
			var at time.Time
			err := json.Unmarshal(text, &at)
			return protoreflect.ValueOfMessage(timestamppb.New(at).ProtoReflect()), err
		case *durationpb.Duration:
			var d Milliseconds
			err := json.Unmarshal(text, &d)
			return protoreflect.ValueOfMessage(durationpb.New(time.Duration(d)).ProtoReflect()), err
		}
		return into, readObject(text, into.Message())
	}
	return into, fmt.Errorf("asjson reads no %v", f.Kind())
}

func readPlain[T string | bool | int64 | uint64](text []byte) (protoreflect.Value, error) {
	var v T
	err := json.Unmarshal(text, &v)
	return protoreflect.ValueOf(v), err
}

// enumNumber returns the value of an enum for which a word stands, 0 if it has none.
func enumNumber(e protoreflect.EnumDescriptor, word string) protoreflect.EnumNumber {
	for i := range e.Values().Len() {
		if number := e.Values().Get(i).Number(); enumWord(e, number) == word {
			return number
		}
	}
	return 0
}
