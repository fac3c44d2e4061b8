package callers

import (
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// reflected returns the services that a server lists, and the files that describe one of them with
// all that they import. It knows nothing but what the server tells, as grpcurl.
func reflected(t *testing.T, conn *grpc.ClientConn,
	symbol string) ([]string, protodesc.Resolver) {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	suite.Must(t, err)
	ask := func(q *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		t.Helper()
		suite.Must(t, stream.Send(q))
		m, err := stream.Recv()
		suite.Must(t, err)
		return m
	}
	var services []string
	for _, s := range ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{},
	}).GetListServicesResponse().GetService() {
		services = append(services, s.GetName())
	}
	set, known := &descriptorpb.FileDescriptorSet{}, map[string]bool{}
	add := func(m *reflectionv1.ServerReflectionResponse) {
		for _, text := range m.GetFileDescriptorResponse().GetFileDescriptorProto() {
			file := &descriptorpb.FileDescriptorProto{}
			suite.Must(t, proto.Unmarshal(text, file))
			if !known[file.GetName()] {
				known[file.GetName()] = true
				set.File = append(set.File, file)
			}
		}
	}
	add(ask(&reflectionv1.ServerReflectionRequest{
		MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{
			FileContainingSymbol: symbol}}))
	for i := 0; i < len(set.File); i++ {
		for _, name := range set.File[i].GetDependency() {
			if known[name] {
				continue
			}
			add(ask(&reflectionv1.ServerReflectionRequest{
				MessageRequest: &reflectionv1.ServerReflectionRequest_FileByFilename{
					FileByFilename: name}}))
			if !known[name] {
				t.Fatalf("reflection does not tell %s", name)
			}
		}
	}
	suite.Must(t, stream.CloseSend())
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("reflection ends with %v", err)
	}
	files, err := protodesc.NewFiles(set)
	suite.Must(t, err)
	return services, files
}

// TestCallsByReflection calls services with nothing but what reflection tells of them.
func TestCallsByReflection(t *testing.T) {
	const quota, envoy = "quotad.v1.QuotaService", "envoy.service.ratelimit.v3.RateLimitService"
	conn := dialed(t, newServer(t, &fronts.Node{Decision: fronts.Allowed()}, fronts.Quiet()))
	for _, c := range []struct{ service, method, request, field, want string }{
		{quota, "Check", `{"domain":"api","descriptors":{"account":"42"},"cost":"2"}`,
			"limit", "account-minute"},
		{envoy, "ShouldRateLimit", `{"domain":"api","descriptors":[` +
			`{"entries":[{"key":"account","value":"42"}]}]}`, "overall_code", "1"},
	} {
		services, files := reflected(t, conn, c.service)
		for _, want := range []string{c.service, "grpc.health.v1.Health"} {
			if !slices.Contains(services, want) {
				t.Errorf("reflection lists %v, without %s", services, want)
			}
		}
		found, err := files.FindDescriptorByName(protoreflect.FullName(c.service))
		suite.Must(t, err)
		method := found.(protoreflect.ServiceDescriptor).Methods().ByName(
			protoreflect.Name(c.method))
		q, a := dynamicpb.NewMessage(method.Input()), dynamicpb.NewMessage(method.Output())
		suite.Must(t, protojson.Unmarshal([]byte(c.request), q))
		suite.Must(t, conn.Invoke(t.Context(), "/"+c.service+"/"+c.method, q, a))
		field := method.Output().Fields().ByName(protoreflect.Name(c.field))
		inside := protoreflect.Message(a)
		if field == nil { // of the decision in the answer
			of := method.Output().Fields().ByName("decision")
			inside = a.Get(of).Message()
			field = of.Message().Fields().ByName(protoreflect.Name(c.field))
		}
		if got := inside.Get(field).String(); got != c.want {
			t.Errorf("%s: %s is %q, want %q", c.method, c.field, got, c.want)
		}
	}
}
