package asjson

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// answers are the messages that operators are answered with.
var answers = []proto.Message{&quotadv1.StatusResponse{}, &quotadv1.DocumentsResponse{},
	&quotadv1.OverviewResponse{}, &quotadv1.ExplainResponse{}, &quotadv1.ListBucketsResponse{},
	&quotadv1.BucketResponse{}, &quotadv1.RecoverResponse{}, &quotadv1.SettleResponse{}}

// TestMarshal: the form of each kind of member.
func TestMarshal(t *testing.T) {
	for _, c := range []struct {
		m    proto.Message
		want string
	}{
		{&quotadv1.LastRequest{At: timestamppb.New(time.Unix(5, 60)), Reason: quotadv1.Reason_REASON_OVER_LIMIT},
			`{"at":"1970-01-01T00:00:05.00000006Z","node":"","allowed":false,"reason":"over_limit"}`},
		{&quotadv1.LastRequest{At: timestamppb.New(time.Unix(0, 0)), Node: "<\"\n", Allowed: true, FromMemory: new(false)},
			`{"at":"1970-01-01T00:00:00Z","node":"\u003c\"\n","allowed":true,"reason":"","from_memory":false}`},
		{&quotadv1.ListBucketsResponse{}, `{"buckets":[],"more":false}`},
		{&quotadv1.ListBucketsResponse{Buckets: []*quotadv1.ListedBucket{{Limit: "a", Descriptors: map[string]string{"y": "1", "x": "2"}}, {}}},
			`{"buckets":[{"limit":"a","domain":"","descriptors":{"x":"2","y":"1"}},{"limit":"","domain":"","descriptors":{}}],"more":false}`},
		{&quotadv1.BucketNow{Remaining: math.MaxInt64, RetryAfter: durationpb.New(1500 * time.Microsecond)},
			`{"allowed":false,"reason":"","remaining":9223372036854775807,"retry_after_ms":1.5}`},
		{&quotadv1.HeldLimit{Waiting: []string{"eu", "us"}}, `{"domain":"","limit":"","waiting":["eu","us"]}`},
		{&quotadv1.DegradedTowards{Region: "eu", Since: &timestamppb.Timestamp{Seconds: math.MaxInt64}}, ""},
		{(*quotadv1.RecoverResponse)(nil), `{"region":"","limits":[]}`},
	} {
		if got := string(Marshal(c.m)); !json.Valid([]byte(got)) || c.want != "" && got != c.want {
			t.Errorf("%v is\n%s, want\n%s", c.m, got, c.want)
		}
	}
}

// TestAnswersSurvive: every answer, empty and with all its fields, is read as it was written.
func TestAnswersSurvive(t *testing.T) {
	for _, m := range answers {
		full := m.ProtoReflect().New().Interface()
		fill(full.ProtoReflect())
		for _, before := range []proto.Message{m, full} {
			text := Marshal(before)
			after := m.ProtoReflect().New().Interface()
			if err := Unmarshal(text, after); err != nil || !proto.Equal(after, before) {
				t.Errorf("%s is\n%v, was\n%v, %v", text, after, before, err)
			}
		}
	}
}

// fill gives every field of a message, and of those within it, a value other than its zero value.
func fill(m protoreflect.Message) {
	of := func(f protoreflect.FieldDescriptor, empty protoreflect.Value) protoreflect.Value {
		switch f.Kind() {
		case protoreflect.MessageKind:
			switch empty.Message().Interface().(type) {
			case *timestamppb.Timestamp:
				return protoreflect.ValueOf(timestamppb.New(time.Unix(1e9, 1000)).ProtoReflect())
			case *durationpb.Duration:
				return protoreflect.ValueOf(durationpb.New(time.Minute).ProtoReflect())
			}
			fill(empty.Message())
			return empty
		case protoreflect.EnumKind:
			return protoreflect.ValueOfEnum(1)
		case protoreflect.BoolKind:
			return protoreflect.ValueOf(true)
		case protoreflect.StringKind:
			return protoreflect.ValueOf("text")
		case protoreflect.Uint64Kind:
			return protoreflect.ValueOf(uint64(math.MaxUint64))
		}
		return protoreflect.ValueOf(int64(math.MinInt64))
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		v := m.NewField(f)
		switch {
		case f.IsList():
			v.List().Append(of(f, v.List().NewElement()))
		case f.IsMap():
			v.Map().Set(protoreflect.ValueOf("key").MapKey(), of(f.MapValue(), v.Map().NewValue()))
		default:
			v = of(f, v)
		}
		m.Set(f, v)
	}
}

// TestOtherVersions: an answer of another version of quotad is read as far as both have members.
func TestOtherVersions(t *testing.T) {
	l := quotadv1.LastRequest{Node: "before"}
	if err := Unmarshal([]byte(`{"new":{"a":[1]},"allowed":true,"reason":"of_tomorrow"}`), &l); err != nil ||
		!proto.Equal(&l, &quotadv1.LastRequest{Allowed: true}) {
		t.Errorf("%v, %v", &l, err)
	}
}

// TestUnmarshalRefuses: an answer of another form is none.
func TestUnmarshalRefuses(t *testing.T) {
	for text, member := range map[string]string{`[]`: "", `{`: "", `{"region":1}`: "region", `{"ready":"yes"}`: "ready",
		`{"generation":-1}`: "generation", `{"mates":"a"}`: "mates", `{"mates":[1]}`: "mates", `{"counters":[]}`: "counters",
		`{"counters":{"a":"1"}}`: "counters", `{"store":[]}`: "store", `{"store":{"losses":1.5}}`: "store: losses",
		`{"store":{"last_loss":"now"}}`: "last_loss", `{"peers":[{"age_ms":"1"}]}`: "age_ms"} {
		var s quotadv1.StatusResponse
		if err := Unmarshal([]byte(text), &s); err == nil || !strings.Contains(err.Error(), member) {
			t.Errorf("%s: %v", text, err)
		}
	}
	var l quotadv1.LastRequest
	if err := Unmarshal([]byte(`{"reason":1}`), &l); err == nil {
		t.Error("a number is no reason")
	}
}

// TestWords: the word for each reason is of that reason alone.
func TestWords(t *testing.T) {
	for number := range quotadv1.Reason_name {
		reason := quotadv1.Reason(number)
		if got := enumNumber(reason.Descriptor(), Word(reason)); got != reason.Number() {
			t.Errorf("%v has the word %q, which is %v", reason, Word(reason), got)
		}
	}
}

// TestLeftOut: the fields that are left out are there.
func TestLeftOut(t *testing.T) {
	for name := range leftOut {
		m := quotadv1.File_quotad_v1_overview_proto.Messages().ByName(name.Parent().Name())
		if m == nil {
			m = quotadv1.File_quotad_v1_quotad_proto.Messages().ByName(name.Parent().Name())
		}
		if m == nil || m.Fields().ByName(name.Name()) == nil {
			t.Errorf("there is no %s", name)
		}
	}
}
