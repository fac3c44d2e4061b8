package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
)

// describedAPI returns the file about the API, which must be valid OpenAPI.
func describedAPI(t *testing.T) *openapi3.T {
	t.Helper()
	loader := openapi3.NewLoader()
	doc, err := loader.LoadFromData(openAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(loader.Context); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestOpenAPIHasEveryRoute: the file has the paths of both listeners with their methods, and no
// others.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	s := newServer(t, &fakeNode{}, quiet())
	served := map[string]bool{}
	for port, p := range map[string]*routes{"api": s.routes(),
		"admin": s.adminRoutes(http.NotFoundHandler())} {
		for pattern, methods := range p.methods {
			path := strings.TrimSuffix(pattern, "{$}")
			for _, method := range methods {
				served[port+" "+method+" "+path] = true
			}
		}
	}
	for path, item := range describedAPI(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for _, port := range operation.Tags {
				route := port + " " + method + " " + path
				if !served[route] {
					t.Errorf("openapi.yaml has %s, which is not served; take it out", route)
				}
				delete(served, route)
				if method == http.MethodGet { // HEAD goes with it, as the file says
					head := port + " " + http.MethodHead + " " + path
					if !served[head] {
						t.Errorf("%s is not served, and GET is", head)
					}
					delete(served, head)
				}
			}
		}
	}
	for _, route := range slices.Sorted(maps.Keys(served)) {
		t.Errorf("%s is served and not in openapi.yaml; describe it there", route)
	}
}

// TestOpenAPIHasEveryMember: the schemas have the members of the answers, with their types.
func TestOpenAPIHasEveryMember(t *testing.T) {
	schemas := describedAPI(t).Components.Schemas
	for name, answer := range map[string]any{"Decision": Decision{}, "Decisions": decisions{},
		"Problem": problem{}, "Reset": resetAnswer{}, "Cut": cutAnswer{}, "Applied": Applied{},
		"Rehearsal": rehearsalAnswer{}} {
		wantSchema(t, name, schemas[name], reflect.TypeOf(answer))
	}
	for name, answer := range messages {
		wantMembers(t, name, schemas[name], answer.ProtoReflect().Descriptor())
	}
	for name, fields := range map[string][]string{"CheckRequest": checkFields,
		"PeekRequest": peekFields, "BatchRequest": batchFields, "RefundRequest": refundFields,
		"ResetRequest": resetFields, "CutRequest": cutFields, "RecoverRequest": recoverFields,
		"RehearsalRequest": rehearsalFields} {
		got := slices.Sorted(maps.Keys(schemas[name].Value.Properties))
		if want := slices.Sorted(slices.Values(fields)); !slices.Equal(got, want) {
			t.Errorf("%s has %v, and the handler reads %v", name, got, want)
		}
	}
}

// messages are the answers that are messages, by the names of their schemas.
var messages = map[string]proto.Message{"Refund": &quotadv1.RefundResponse{},
	"Recover": &quotadv1.RecoverResponse{}, "Bucket": &quotadv1.BucketResponse{},
	"Status": &quotadv1.StatusResponse{}, "DocumentsAnswer": &quotadv1.DocumentsResponse{},
	"Overview": &quotadv1.OverviewResponse{}, "Explanation": &quotadv1.ExplainResponse{},
	"ListedBuckets": &quotadv1.ListBucketsResponse{}}

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

// TestAnswersAreAsInOpenAPI: what the handlers answer is valid by the schema of its status.
func TestAnswersAreAsInOpenAPI(t *testing.T) {
	doc := describedAPI(t)
	const json = "application/json"
	const place = `{"limit":"account-minute","domain":"api","descriptors":{"account":"42"}}`
	for _, c := range []struct {
		method, path, target, contentType, body string
		decision                                admit.Decision
		code                                    int
	}{
		{"POST", "/v1/check", "", json, aRequest, allowed(), 200},
		{"POST", "/v1/check", "", json, aRequest, denied(), 429},
		{"POST", "/v1/check", "", json, aRequest, undecided(admit.StoreFailure), 503},
		{"POST", "/v1/check", "", json, `{"cost":"1"}`, allowed(), 400},
		{"POST", "/v1/check", "", "text/plain", aRequest, allowed(), 415},
		{"POST", "/v1/peek", "", json, aRequest, denied(), 200},
		{"POST", "/v1/check-batch", "", json, `{"requests":[` + aRequest + `,{}]}`, allowed(), 200},
		{"POST", "/v1/refund", "", json, `{"receipt":"` + aReceipt + `"}`, allowed(), 200},
		{"POST", "/json", "", "", `{"domain":"api","descriptors":[` +
			`{"entries":[{"key":"account","value":"42"}]}]}`, allowed(), 200},
		{"GET", "/v1/status", "", "", "", allowed(), 200},
		{"GET", "/v1/buckets/{limit}", "/v1/buckets/account-minute?domain=api&account=42", "", "",
			allowed(), 200},
		{"GET", "/v1/buckets/{limit}", "/v1/buckets/none?domain=api", "", "", allowed(), 404},
		{"GET", "/v1/documents", "", "", "", allowed(), 200},
		{"GET", "/v1/overview", "", "", "", allowed(), 200},
		{"GET", "/v1/explain/{limit}", "/v1/explain/a?account=42", "", "", allowed(), 200},
		{"GET", "/v1/buckets", "", "", "", allowed(), 200},
		{"POST", "/v1/recover", "", json, `{"region":"us-east"}`, allowed(), 200},
		{"POST", "/v1/reset", "", json, place, allowed(), 200},
		{"POST", "/v1/cut", "", json, `{"region":"eu-west","for":"1s"}`, allowed(), 403},
		{"POST", "/v1/apply", "", "application/yaml",
			strings.Replace(aDocument, "version: 3", "version: 4", 1), allowed(), 200},
		{"POST", "/v1/apply", "", "application/yaml", "{", allowed(), 400},
	} {
		f := overseen(t)
		f.decision, f.status = c.decision, aStatus()
		s := newServer(t, f, quiet())
		if c.target == "" {
			c.target = c.path
		}
		r := httptest.NewRequest(c.method, c.target, strings.NewReader(c.body))
		r.Header.Set("Content-Type", c.contentType)
		operation := doc.Paths.Value(c.path).GetOperation(c.method)
		handler := s.http.Handler
		if slices.Contains(operation.Tags, "admin") {
			handler = s.admin.Handler
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != c.code {
			t.Errorf("%s %s: answered %d %s, want %d", c.method, c.target, w.Code, w.Body, c.code)
			continue
		}
		wantValid(t, c.method+" "+c.target, operation, w)
	}
}

// wantValid holds an answer against the schema that an operation has for its status and type.
func wantValid(t *testing.T, at string, of *openapi3.Operation, w *httptest.ResponseRecorder) {
	t.Helper()
	response := of.Responses.Status(w.Code)
	if response == nil {
		response = of.Responses.Default()
	}
	content := response.Value.Content[w.Header().Get("Content-Type")]
	if content == nil {
		t.Errorf("%s: openapi.yaml has no %s for %d", at, w.Header().Get("Content-Type"), w.Code)
		return
	}
	var answer any
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Errorf("%s: %v", at, err)
	} else if err := content.Schema.Value.VisitJSON(answer); err != nil {
		t.Errorf("%s: %d %s: %v", at, w.Code, w.Body, err)
	}
}

// TestOpenAPIIsServed: both listeners serve the file.
func TestOpenAPIIsServed(t *testing.T) {
	s := newServer(t, &fakeNode{}, quiet())
	for port, handler := range map[string]http.Handler{"api": s.http.Handler,
		"admin": s.admin.Handler} {
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/openapi.yaml", nil))
		if w.Code != http.StatusOK || w.Body.String() != string(openAPI) {
			t.Errorf("%s answers %d with %d bytes", port, w.Code, w.Body.Len())
		}
	}
}
