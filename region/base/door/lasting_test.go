package door

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const quotaPath = rlqsv3.RateLimitQuotaService_StreamRateLimitQuotas_FullMethodName

type (
	quotaServer = rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasServer
	quotaClient = rlqsv3.RateLimitQuotaService_StreamRateLimitQuotasClient
	usageReport = rlqsv3.RateLimitQuotaUsageReports
	bucketUsage = rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage
	quotaAnswer = rlqsv3.RateLimitQuotaResponse
	quotaAction = rlqsv3.RateLimitQuotaResponse_BucketAction
)

// lastingService is a service of streams that last, with a handler that a test sets.
type lastingService struct {
	rlqsv3.UnimplementedRateLimitQuotaServiceServer
	handle func(quotaServer) error // nil: answers every report with as many actions
}

// StreamRateLimitQuotas implements the service.
func (s *lastingService) StreamRateLimitQuotas(stream quotaServer) error {
	if s.handle != nil {
		return s.handle(stream)
	}
	for {
		m, err := stream.Recv()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if err := stream.Send(answerTo(m)); err != nil {
			return err
		}
	}
}

func answerTo(m *usageReport) *quotaAnswer {
	a := &quotaAnswer{}
	for _, u := range m.GetBucketQuotaUsages() {
		a.BucketAction = append(a.BucketAction, &quotaAction{BucketId: u.GetBucketId()})
	}
	return a
}

// reportOf is a report of some bucket ids whose values have a size.
func reportOf(n, size int) *usageReport {
	m := &usageReport{Domain: "api"}
	for i := range n {
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&bucketUsage{BucketId: &rlqsv3.BucketId{Bucket: map[string]string{
				fmt.Sprint(i): strings.Repeat("x", size)}}})
	}
	return m
}

func (h *house) stream(host string) quotaClient {
	h.T.Helper()
	s, err := rlqsv3.NewRateLimitQuotaServiceClient(h.client(host)).StreamRateLimitQuotas(h.T.Context())
	if err != nil {
		h.T.Fatal(err)
	}
	return s
}

// talk sends a report, and wants an action for each bucket id of it.
func talk(t *testing.T, s quotaClient, m *usageReport) {
	t.Helper()
	suite.Must(t, s.Send(m))
	a, err := s.Recv()
	if err != nil || len(a.GetBucketAction()) != len(m.GetBucketQuotaUsages()) {
		t.Fatalf("%d bucket ids are answered with %d, %v", len(m.GetBucketQuotaUsages()),
			len(a.GetBucketAction()), err)
	}
}

// wantEnd wants a stream to end with a code within some time.
func wantEnd(t *testing.T, s quotaClient, code codes.Code, least, most time.Duration) {
	t.Helper()
	begun := time.Now()
	_, err := s.Recv()
	if took := time.Since(begun); status.Code(err) != code || took < least || took > most {
		t.Errorf("ended with %v after %v, want %v after %v to %v", err, took, code, least, most)
	}
}

// TestLastingWithoutAMessage: only the first message must come within ReceiveTimeout.
func TestLastingWithoutAMessage(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		wantEnd(t, h.stream("client"), codes.DeadlineExceeded, ReceiveTimeout-time.Second,
			ReceiveTimeout+time.Second)
		r := h.rude("client", 1<<16)
		defer r.done()
		r.begin(1, quotaPath)
		r.announce(1, 1000, 500) // half of it
		rest(ReceiveTimeout + time.Second)
		if how, _, _ := r.endOf(1); how != "status 4" {
			t.Errorf("half a message: ended with %q", how)
		}
		if got := h.door.metric("quotad_calls_late_total", ""); got != 2 {
			t.Errorf("%v calls are counted as late", got)
		}
	})
}

// TestLastingSilence: a stream whose client is silent for MaxSilence ends. One that talks stays.
func TestLastingSilence(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		talks, silent := h.stream("client"), h.stream("client")
		talk(t, silent, reportOf(1, 1))
		for range 30 {
			talk(t, talks, reportOf(1, 1))
			rest(MaxSilence - time.Second)
		}
		wantEnd(t, silent, codes.DeadlineExceeded, 0, 0)
		wantEnd(t, talks, codes.DeadlineExceeded, 0, time.Second)
		if got := h.door.metric("quotad_calls_late_total", ""); got != 2 {
			t.Errorf("%v calls are counted as late", got)
		}
	})
}

// TestLastingHalfAMessage: silence is the time without a whole message.
func TestLastingHalfAMessage(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		r := h.rude("client", 1<<16)
		defer r.done()
		r.begin(1, quotaPath)
		r.announce(1, 0, 0) // a whole one
		r.announce(1, 1000, 1)
		for range 10 {
			rest(10 * time.Second)
			if how, _, _ := r.endOf(1); how == "" {
				_ = r.WriteData(1, false, []byte{0})
			}
		}
		how, after, _ := r.endOf(1)
		if how != "status 4" || after < MaxSilence || after > MaxSilence+time.Second {
			t.Errorf("a message that comes byte by byte: ended with %q after %v", how, after)
		}
	})
}

// TestLastingEnds: a stream that has ended is not counted as late when its silence would be over.
func TestLastingEnds(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		s := h.stream("client")
		talk(t, s, reportOf(1, 1))
		suite.Must(t, s.CloseSend())
		wantEnd(t, s, codes.Unknown, 0, 0) // io.EOF
		rest(2 * MaxSilence)
		if got := h.door.metric("quotad_calls_late_total", ""); got != 0 {
			t.Errorf("%v calls are counted as late", got)
		}
	})
}

// TestLastingUnread: a client that is silent and reads nothing does not hold its handler.
func TestLastingUnread(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		over := make(chan error, 1)
		h.lasts.handle = func(s quotaServer) error {
			m, err := s.Recv()
			for err == nil {
				err = s.Send(answerTo(m))
			}
			over <- err
			return err
		}
		s := h.stream("client")
		suite.Must(t, s.Send(reportOf(100, 100)))
		rest(MaxSilence - time.Second)
		if len(over) != 0 {
			t.Fatalf("the handler has ended: %v", <-over)
		}
		rest(2 * time.Second)
		if len(over) != 1 {
			t.Fatal("the handler waits")
		}
		<-over
	})
}

// TestLastingMessageBounds: each message of a stream has the bounds of a call's message. A larger
// one ends the stream.
func TestLastingMessageBounds(t *testing.T) {
	for name, c := range map[string]struct {
		m    *usageReport
		code codes.Code
	}{
		"as many records as it may have": {reportOf(199, 100), codes.OK},
		"too many records":               {reportOf(200, 100), codes.InvalidArgument},
		"as many bytes as it may have":   {reportOf(1, someBounds.Message-100), codes.OK},
		"too many bytes":                 {reportOf(1, someBounds.Message), codes.ResourceExhausted},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, roomy, func(t *testing.T, h *house) {
				for first := range 2 {
					s := h.stream("client")
					for range first {
						talk(t, s, reportOf(3, 10))
					}
					if c.code == codes.OK {
						talk(t, s, c.m)
						continue
					}
					_ = s.Send(c.m)
					wantEnd(t, s, c.code, 0, time.Second)
				}
			})
		})
	}
}

// raw is a report as bytes, of the given usages as bytes.
func raw(domain string, usages ...[]byte) []byte {
	b := protowire.AppendString(protowire.AppendTag(nil, 1, protowire.BytesType), domain)
	for _, u := range usages {
		b = protowire.AppendBytes(protowire.AppendTag(b, 2, protowire.BytesType), u)
	}
	return b
}

// usage is a usage as bytes, whose bucket id has one name and value.
func usage(name, value string) []byte {
	text := func(b []byte, n protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
	}
	entry := text(text(nil, 1, name), 2, value)
	return text(nil, 1, string(text(nil, 1, string(entry))))
}

// TestLastingText: an element with what is no text is an empty one, and the others are whole. A
// message whose own text is none ends the stream.
func TestLastingText(t *testing.T) {
	in(t, roomy, func(t *testing.T, h *house) {
		var got []string
		h.lasts.handle = func(s quotaServer) error {
			for {
				m, err := s.Recv()
				if err != nil {
					return err
				}
				for _, u := range m.GetBucketQuotaUsages() {
					got = append(got, fmt.Sprint(u.GetBucketId().GetBucket()))
				}
			}
		}
		s, err := h.client("client").NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true,
			ClientStreams: true}, quotaPath, grpc.ForceCodecV2(bytesCodec{}))
		suite.Must(t, err)
		for _, m := range [][]byte{
			raw("api", usage("a", "1"), usage("a", "\xff"), usage("\xc3(", "2"), usage("b", "3")),
			raw("api", usage("c", "\u202e\x00")),
			raw("\xff", usage("d", "4")),
		} {
			suite.Must(t, s.SendMsg(m))
		}
		var end []byte
		if err := s.RecvMsg(&end); status.Code(err) != codes.InvalidArgument ||
			!strings.Contains(err.Error(), "domain") {
			t.Errorf("a domain that is no text: %v", err)
		}
		if want := []string{"map[a:1]", "map[]", "map[]", "map[b:3]", "map[c:\u202e\x00]"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestLastingBroken: bytes that are no message end the stream.
func TestLastingBroken(t *testing.T) {
	for _, m := range []string{"\x12", "\x12\x05ab", "\x0a\x01\xff\x12\x05ab", "\x12\x03\x0a\x01\xff"} {
		in(t, roomy, func(t *testing.T, h *house) {
			s, err := h.client("client").NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true,
				ClientStreams: true}, quotaPath, grpc.ForceCodecV2(bytesCodec{}))
			suite.Must(t, err)
			suite.Must(t, s.SendMsg([]byte(m)))
			var end []byte
			if err := s.RecvMsg(&end); status.Code(err) != codes.InvalidArgument {
				t.Errorf("%q: %v", m, err)
			}
		})
	}
}
