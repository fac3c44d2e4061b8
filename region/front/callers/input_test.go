package callers

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/wire"
)

// answerTo sends raw bytes over its own connection, and reads the answer.
func (s *front) answerTo(t *testing.T, sent string) (code int, problem wire.Problem) {
	t.Helper()
	conn, err := s.Client.DialContext(t.Context(), "tcp", s.At)
	suite.Must(t, err)
	defer conn.Close()
	if _, err := io.WriteString(conn, sent); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	suite.Must(t, err)
	defer r.Body.Close()
	_ = json.NewDecoder(r.Body).Decode(&problem)
	return r.StatusCode, problem
}

// TestMalformedBodies: if a body is not as its headers say, the answer blames the caller, not the
// node.
func TestMalformedBodies(t *testing.T) {
	const post = "POST /v1/check HTTP/1.1\r\nHost: node\r\nContent-Type: application/json\r\n"
	const chunked = post + "Transfer-Encoding: chunked\r\n\r\n"
	for _, c := range []struct{ name, sent string }{
		{"a length that is no number", chunked + "zz\r\n{}\r\n0\r\n\r\n"},
		{"a negative length", chunked + "-1\r\n{}\r\n0\r\n\r\n"},
		{"a length beyond 64 bits", chunked + "fffffffffffffffff\r\n{}\r\n0\r\n\r\n"},
		{"a chunk longer than it says", chunked + "1\r\n{}}\r\n0\r\n\r\n"},
		{"a bare LF behind a length", chunked + "2;\n{}\r\n0\r\n\r\n"},
		{"a malformed trailer", chunked + "2\r\n{}\r\n0\r\n\x00\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{}
			served(t, node, func(t *testing.T, s *front) {
				code, p := s.answerTo(t, c.sent)
				if code != http.StatusBadRequest {
					t.Errorf("answered %d %q, want 400", code, p.Detail)
				}
				if checked, _ := node.Asked(); checked != 0 {
					t.Error("the node was asked")
				}
			})
		})
	}
}

// TestCallersInBrowsers: a page of another site cannot make its visitor's browser charge, reset or
// settle anything.
func TestCallersInBrowsers(t *testing.T) {
	const post = "POST /v1/check HTTP/1.1\r\nHost: node:8080\r\nConnection: close\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(fronts.Request), fronts.Request)
	const asJSON = "Content-Type: application/json\r\n"
	for _, c := range []struct {
		name, sent string
		want       int
		says       string
	}{
		{"no content type", post + length, 415, "application/json"},
		{"an empty content type", post + "Content-Type: \r\n" + length, 415, "application/json"},
		{"a simple request of another site",
			post + "Origin: https://evil.example\r\nContent-Type: text/plain\r\n" + length, 403,
			"another site"},
		{"another site, as JSON", post + "Origin: https://evil.example\r\n" + asJSON + length, 403,
			"another site"},
		{"another site, said by the browser", post + "Sec-Fetch-Site: cross-site\r\n" +
			asJSON + length, 403, "another site"},
		{"a file", post + "Origin: null\r\n" + asJSON + length, 403, "another site"},
		{"a page of the node's own host", post + "Origin: http://node:8080\r\n" + asJSON + length,
			200, ""},
		{"no browser", post + asJSON + length, 200, ""},
		{"another site may look",
			"GET /livez HTTP/1.1\r\nHost: node\r\nOrigin: https://evil.example\r\n\r\n", 200, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{Decision: fronts.Allowed()}
			served(t, node, func(t *testing.T, s *front) {
				code, p := s.answerTo(t, c.sent)
				if code != c.want || !strings.Contains(p.Detail, c.says) {
					t.Errorf("answered %d %q, want %d that says %q", code, p.Detail, c.want, c.says)
				}
				if checked, _ := node.Asked(); (checked > 0) != (c.want == 200 &&
					strings.Contains(c.sent, "POST")) {
					t.Errorf("the node was asked %d times", checked)
				}
			})
		})
	}
}

func text(n protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(nil, n, protowire.BytesType), s)
}

// descriptor is an entry of the descriptors of a request.
func descriptor(name, value string) []byte {
	return text(2, string(append(text(1, name), text(2, value)...)))
}

// TestGRPCMalformed: if bytes are no message, or a text is not UTF-8, the answer blames the caller
// and says where.
func TestGRPCMalformed(t *testing.T) {
	domain := text(1, "api")
	for _, c := range []struct {
		name, method string
		sent         []byte
		field        string
	}{
		{"domain", "Check", text(1, "\xff"), "domain"},
		{"domain of a peek", "Peek", text(1, "\xff"), "domain"},
		{"a surrogate", "Check", text(1, "\xed\xa0\x80"), "domain"},
		{"a name", "Check", append(domain, descriptor("\xff", "1")...), "descriptors"},
		{"a value", "Check", append(domain, descriptor("account", "\xff")...),
			"descriptors.account"},
		{"a value under an odd name", "Check", append(domain, descriptor("a\nb", "\xff")...),
			`descriptors["a\nb"]`},
		{"request_id", "Check", append(domain, text(4, "\xc0\x80")...), "request_id"},
		{"the second of a batch", "CheckBatch", append(text(1, string(domain)),
			text(1, string(text(1, "\xff")))...), "requests[1].domain"},
		{"a value in a batch", "CheckBatch",
			text(1, string(append(domain, descriptor("account", "\xff")...))),
			"requests[0].descriptors.account"},
		{"a receipt", "Settle", text(1, "\xff"), "receipt"},
		{"cut short", "Check", domain[:3], "message"},
		{"no protobuf", "Check", []byte("GET / HTTP/1.1\r\n\r\n"), "message"},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{Decision: fronts.Allowed()}
			err := dialed(t, newServer(t, node, fronts.Quiet())).Invoke(t.Context(), "/"+quotaService+"/"+c.method, c.sent, nil,
				grpc.ForceCodecV2(fronts.RawCodec{}))
			wantViolations(t, err, c.field)
			if checked, peeked := node.Asked(); checked+peeked != 0 {
				t.Error("the node was asked")
			}
		})
	}
}

// TestGRPCTooMuch: a message that would need much memory is refused before it is decoded.
func TestGRPCTooMuch(t *testing.T) {
	var descriptors []byte
	for i := range 40_000 {
		descriptors = append(descriptors, descriptor(fmt.Sprint(i), "")...)
	}
	for _, c := range []struct {
		name, method string
		sent         []byte
	}{
		{"40,000 descriptors", "Check", append(text(1, "api"), descriptors...)},
		{"half a million requests", "CheckBatch",
			[]byte(strings.Repeat(string(text(1, "")), maxMessageBytes/2))},
		{"half a million unknown fields", "Check",
			[]byte(strings.Repeat("\x38\x00", maxMessageBytes/2))},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dialed(t, newServer(t, &fronts.Node{Decision: fronts.Allowed()}, fronts.Quiet()))
			err := conn.Invoke(t.Context(), "/"+quotaService+"/"+c.method, c.sent, nil,
				grpc.ForceCodecV2(fronts.RawCodec{}))
			wantViolations(t, err, "message")
		})
	}
	conn := dialed(t, newServer(t, &fronts.Node{Decision: fronts.Allowed()}, fronts.Quiet()))
	err := conn.Invoke(t.Context(), "/"+quotaService+"/Check", text(1, strings.Repeat("d", 10<<20)),
		nil, grpc.ForceCodecV2(fronts.RawCodec{}))
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("10 MB of domain is %v, want ResourceExhausted", err)
	}
}

// TestKeysStayApart: keys that look alike stay different, and unusual ones reach the node
// unchanged, over gRPC and HTTP.
func TestKeysStayApart(t *testing.T) {
	keys := []string{"a_b", "a", "}{", "{}", "\x00", "\r\n", "*", "\u00e9", "e\u0301", "\u202e", "",
		"-1", "NaN", "+5", " 5 "}
	node := &fronts.Node{Decision: fronts.Allowed()}
	s := newServer(t, node, fronts.Quiet())
	client := quota(t, node)
	for _, key := range keys {
		m := &admit.Request{Domain: "api", Descriptors: map[string]string{"account": key,
			"b_c": key}, Cost: 1}
		if got := fronts.Exchange(s.http.Handler, "POST", "/v1/check", "application/json",
			string(encode(*m))); !strings.HasPrefix(got, "200") {
			t.Errorf("%q over HTTP: %s", key, got)
		}
		if _, err := client.Check(t.Context(), checkOf(*m)); err != nil {
			t.Errorf("%q over gRPC: %v", key, err)
		}
		for _, got := range node.Checked[len(node.Checked)-2:] {
			if !same(got, *m) {
				t.Errorf("the node was asked %+v, want %+v", got, *m)
			}
		}
	}
}
