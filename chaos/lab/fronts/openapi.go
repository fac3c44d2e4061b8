package fronts

import (
	"maps"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/front/asjson"
)

// OpenAPI returns the file about the HTTP paths, for packages beside that of the file, which must be valid OpenAPI.
func OpenAPI(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromFile("../wire/openapi.yaml")
	suite.Must(t, err)
	suite.Must(t, doc.Validate(loader.Context))
	return doc
}

// wantMembers holds a schema against the message whose JSON it describes. A member that is a message
// may be required though the message could be absent: answers have all that the schema requires.
func wantMembers(t *testing.T, at string, ref *openapi3.SchemaRef, of protoreflect.MessageDescriptor) {
	t.Helper()
	if ref == nil || !ref.Value.Type.Is("object") {
		t.Errorf("openapi.yaml has no object %s", at)
		return
	}
	left := maps.Clone(ref.Value.Properties)
	for i := range of.Fields().Len() {
		f := of.Fields().Get(i)
		name, always := asjson.Member(f)
		required := slices.Contains(ref.Value.Required, name)
		if always != required && (always || f.Message() == nil || f.IsList() || f.IsMap()) {
			t.Errorf("%s.%s is required: %v, want %v", at, name, required, always)
		}
		wantMember(t, at+"."+name, left[name], f)
		delete(left, name)
	}
	for name := range left {
		t.Errorf("openapi.yaml has %s.%s, which no answer has", at, name)
	}
}

// wantMember holds a schema against the field whose JSON it describes.
func wantMember(t *testing.T, at string, ref *openapi3.SchemaRef, f protoreflect.FieldDescriptor) {
	t.Helper()
	switch {
	case ref == nil:
		t.Errorf("openapi.yaml has no %s", at)
		return
	case f.IsMap():
		ref, f = ref.Value.AdditionalProperties.Schema, f.MapValue()
	case f.IsList() && !ref.Value.Type.Is("array"):
		t.Errorf("%s is %v, want array", at, ref.Value.Type)
		return
	case f.IsList():
		ref = ref.Value.Items
	}
	want := map[protoreflect.Kind]string{protoreflect.BoolKind: "boolean", protoreflect.StringKind: "string",
		protoreflect.EnumKind: "string", protoreflect.Int64Kind: "integer", protoreflect.Uint64Kind: "integer"}[f.Kind()]
	if f.Message() != nil {
		switch f.Message().FullName() {
		case "google.protobuf.Timestamp":
			want = "string"
		case "google.protobuf.Duration":
			want = "number"
		default:
			wantMembers(t, at, ref, f.Message())
			return
		}
	}
	if !ref.Value.Type.Is(want) {
		t.Errorf("%s is %v, want %s", at, ref.Value.Type, want)
	}
}

// wantSchema holds a schema against the type whose JSON it describes.
func wantSchema(t *testing.T, at string, ref *openapi3.SchemaRef, of reflect.Type) {
	t.Helper()
	if ref == nil {
		t.Errorf("openapi.yaml has no %s", at)
		return
	}
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	schema, want := ref.Value, jsonType(of)
	if !schema.Type.Is(want) {
		t.Errorf("%s is %v, want %s", at, schema.Type, want)
		return
	}
	switch {
	case want == "array":
		wantSchema(t, at+"[]", schema.Items, of.Elem())
	case want == "object" && of.Kind() == reflect.Map:
		wantSchema(t, at+".*", schema.AdditionalProperties.Schema, of.Elem())
	case want == "object":
		members := membersOf(of)
		required := []string{}
		for name, field := range members {
			wantSchema(t, at+"."+name, schema.Properties[name], field.Type)
			tag := field.Tag.Get("json")
			if !strings.Contains(tag, ",omitempty") && !strings.Contains(tag, ",omitzero") {
				required = append(required, name)
			}
		}
		for name := range schema.Properties {
			if _, has := members[name]; !has {
				t.Errorf("openapi.yaml has %s.%s, which no answer has", at, name)
			}
		}
		slices.Sort(required)
		if got := slices.Sorted(slices.Values(schema.Required)); !slices.Equal(got, required) {
			t.Errorf("%s requires %v, want %v", at, got, required)
		}
	}
}

// membersOf returns the fields of a struct by their JSON names, with those of embedded structs. An
// embedded pointer may be nil, and has a schema of its own.
func membersOf(of reflect.Type) map[string]reflect.StructField {
	all := map[string]reflect.StructField{}
	for field := range of.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case field.Anonymous && field.Type.Kind() == reflect.Struct:
			maps.Copy(all, membersOf(field.Type))
		case !field.Anonymous:
			all[name] = field
		}
	}
	return all
}

// jsonType is the JSON type in which a Go type is written.
func jsonType(of reflect.Type) string {
	switch of {
	case reflect.TypeFor[asjson.Milliseconds]():
		return "number"
	case reflect.TypeFor[time.Time](), reflect.TypeFor[netip.Addr]():
		return "string"
	}
	switch of.Kind() {
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "integer"
}

// WantAnswers holds the schemas of the file, by their names, against the types and messages whose
// JSON they describe, and against the fields that handlers read of requests.
func WantAnswers(t *testing.T, types map[string]any, messages map[string]proto.Message,
	requests map[string][]string) {
	t.Helper()
	schemas := OpenAPI(t).Components.Schemas
	for name, answer := range types {
		wantSchema(t, name, schemas[name], reflect.TypeOf(answer))
	}
	for name, answer := range messages {
		wantMembers(t, name, schemas[name], answer.ProtoReflect().Descriptor())
	}
	for name, fields := range requests {
		got := slices.Sorted(maps.Keys(schemas[name].Value.Properties))
		if want := slices.Sorted(slices.Values(fields)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, and the handler reads %v", name, got, want)
		}
	}
}
