package api

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/front/operators"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/trade/peer"
)

// allowedTo says which roles may make each call, on which port. It is written down apart from the
// table of package access, against which it is held. everybody needs no role, any has one.
var allowedTo = map[string]struct {
	port string
	who  string
}{
	"/v1/check":       {"api", "check"},
	"/v1/check-batch": {"api", "check"},
	"/v1/peek":        {"api", "check"},
	"/v1/authz":       {"api", "check"},
	"/v1/report":      {"api", "check"},
	"/v1/settle":      {"api", "check"},
	"/json":           {"api", "check"},
	"/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit":                   {"api", "check"},
	"/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas": {"api", "check"},
	"/quotad.v1.QuotaService/Check":                                                  {"api", "check"},
	"/quotad.v1.QuotaService/CheckBatch":                                             {"api", "check"},
	"/quotad.v1.QuotaService/Peek":                                                   {"api", "check"},
	"/quotad.v1.QuotaService/Report":                                                 {"api", "check"},
	"/quotad.v1.QuotaService/Take":                                                   {"api", "check"},
	"/quotad.v1.QuotaService/Settle":                                                 {"api", "check"},

	"/v1/status":           {"admin", "read operate admin"},
	"/v1/overview":         {"admin", "read operate admin"},
	"/v1/watch":            {"admin", "read operate admin"},
	"/v1/explain/{limit}":  {"admin", "read operate admin"},
	"/v1/buckets":          {"admin", "read operate admin"},
	"/v1/buckets/{limit}":  {"admin", "read operate admin"},
	"/v1/document":         {"admin", "read operate admin"},
	"/v1/documents":        {"admin", "read operate admin"},
	"/v1/apply":            {"admin", "admin"},
	"/metrics":             {"admin", "read operate admin"},
	"/v1/reset":            {"admin", "operate admin"},
	"/v1/recover":          {"admin", "admin"},
	"/v1/rehearse":         {"admin", "operate admin"},
	"/v1/cut":              {"admin", "operate admin"},
	"/debug/pprof/":        {"admin", "admin"},
	"/debug/pprof/profile": {"admin", "admin"},
	"/debug/pprof/trace":   {"admin", "admin"},

	"/{$}":            {"admin", "everybody"},
	"/console/{file}": {"admin", "everybody"},

	"/v1/openapi.yaml":             {"both", "any"},
	"/livez":                       {"both", "everybody"},
	"/readyz":                      {"both", "everybody"},
	"/healthcheck":                 {"api", "everybody"},
	"/grpc.health.v1.Health/Check": {"api", "everybody"},
	"/grpc.health.v1.Health/List":  {"api", "everybody"},
	"/grpc.health.v1.Health/Watch": {"api", "everybody"},
	"/grpc.reflection.v1.ServerReflection/ServerReflectionInfo":      {"api", "any"},
	"/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": {"api", "any"},
}

// callsOf returns the calls that a server serves, by port.
func callsOf(s *Server) map[string][]string {
	return map[string][]string{"api": slices.Collect(maps.Keys(s.Callers.Calls())),
		"admin": slices.Collect(maps.Keys(s.Operators.Calls()))}
}

// noCutter makes no cuts, and noRehearsal neither load nor a store's end.
type (
	noCutter    struct{}
	noRehearsal struct{}
)

func (noCutter) Cut(string, string, time.Duration) ([]netip.Addr, error) { return nil, nil }
func (noCutter) PacketsLost() uint64                                     { return 0 }
func (noRehearsal) Load(string, int) error                               { return nil }
func (noRehearsal) KillStore(string, time.Duration) error                { return nil }
func (noRehearsal) Loads() map[string]int                                { return nil }

// TestEveryCallHasARow: what is served is in the tables, on the port that they say, and nothing
// else is in them.
func TestEveryCallHasARow(t *testing.T) {
	served := map[string][]string{} // ports by call
	for port, calls := range callsOf(newServer(t, &fronts.Node{}, fronts.Quiet())) {
		for _, call := range calls {
			served[call] = append(served[call], port)
		}
	}
	for call, ports := range served {
		want, known := allowedTo[call]
		if both := len(ports) == 2; !known || both != (want.port == "both") || !both && ports[0] != want.port {
			t.Errorf("%s is served on %v, and the test's table says %+v", call, ports, want)
		}
		if _, known := roles.NeedOf(call); !known {
			t.Errorf("%s has no row in the table of package access", call)
		}
	}
	for _, call := range slices.Concat(roles.Calls(), slices.Collect(maps.Keys(allowedTo))) {
		if served[call] == nil {
			t.Errorf("%s has a row and is not served", call)
		}
	}
}

// secured is a server with roles on loopback ports, with or without TLS.
type secured struct {
	*Server
	node  *fronts.Node
	roles fronts.Roles
	ca    fixtures.Authority
	shown map[string]tls.Certificate // that callers may show, by the name in proof
	mode  string
	at    map[string]string // host:port of api over gRPC ("api/rpc"), api over HTTP ("api/web"), admin
	log   *bytes.Buffer
	audit *bytes.Buffer
}

// The modes of a secured server.
var modes = []string{"plain", "tls", "mtls"}

func startSecured(t *testing.T, mode string) *secured {
	t.Helper()
	s := &secured{node: &fronts.Node{Decision: fronts.Allowed(), State: region.Status{Region: "us-east"}}, roles: fronts.NewRoles(t), mode: mode,
		at: map[string]string{}, log: &bytes.Buffer{}, audit: &bytes.Buffer{}, ca: fixtures.NewAuthority(t)}
	s.shown = map[string]tls.Certificate{"unnamed": s.ca.Issue(t, &x509.Certificate{})}
	for _, role := range roles.Roles() {
		s.shown[string(role)] = s.ca.Issue(t, certificateOf(role))
	}
	log := slog.New(slog.NewJSONHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	acts := audit.New(s.audit, "us-east/n1", log)
	o := Options{Callers: callers.Options{Port: wire.Port{Audit: acts, Guard: roles.NewGuard("api", s.roles.Book, log)}},
		Operators: operators.Options{Port: wire.Port{Audit: acts, Guard: roles.NewGuard("admin", s.roles.Book, log)},
			Roles: s.roles.Book, Cutter: noCutter{}, Rehearsal: noRehearsal{}}}
	if mode != "plain" {
		base := filepath.Join(t.TempDir(), "server")
		s.ca.Write(t, filepath.Dir(base), "server", &x509.Certificate{DNSNames: []string{"localhost"}})
		files := peer.Files{Cert: base + ".pem", Key: base + ".key"}
		if mode == "mtls" {
			files.CA = base + "-ca.pem"
		}
		trust, err := peer.LoadServer(files, func(err error) { t.Error(err) })
		suite.Must(t, err)
		o.Callers.TLS, o.Operators.TLS = trust.ServerConfig, trust.ServerConfig
	}
	s.Server = New(s.node, log, o)
	var serving sync.WaitGroup
	for name, serve := range map[string]func(net.Listener) error{"api/rpc": s.Callers.ServeGRPC, "api/web": s.Callers.ServeHTTP, "admin": s.Operators.Serve} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		suite.Must(t, err)
		s.at[name] = l.Addr().String()
		serving.Go(func() {
			if err := serve(l); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return s
}

// certificateOf names a caller of a role, as in fronts.Roles.
func certificateOf(role roles.Role) *x509.Certificate {
	return &x509.Certificate{URIs: []*url.URL{{Scheme: "spiffe", Host: "x.org", Path: "/" + string(role)}}}
}

// proof is what a caller shows.
type proof struct {
	name        string
	role        roles.Role // whose it is; empty: nobody's
	token       string
	certificate string // its name in shown
}

func (s *secured) proofs() []proof {
	stranger, _ := roles.NewToken()
	all := []proof{{name: "nothing"}, {name: "a stranger's token", token: stranger},
		{name: "an unnamed certificate", certificate: "unnamed"}}
	for _, role := range roles.Roles() {
		all = append(all, proof{"the token of " + string(role), role, s.roles.Tokens[role], ""},
			proof{"the certificate of " + string(role), role, "", string(role)})
	}
	return all
}

// outcome says what a caller is to be answered: passed, 401 or 403.
func (p proof) outcome(call, mode string) string {
	who := allowedTo[call].who
	role := string(p.role)
	if p.certificate != "" && mode != "mtls" { // it is not asked for
		role = ""
	}
	switch {
	case who == "everybody":
		return "passed"
	case role == "":
		return "401"
	case who == "any" || slices.Contains(strings.Fields(who), role):
		return "passed"
	}
	return "403"
}

// TestEveryCallByEveryRole tries every call that is served with every kind of proof, over plain
// text, TLS, and TLS with certificates of callers.
func TestEveryCallByEveryRole(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			s := startSecured(t, mode)
			tried := 0
			for _, p := range s.proofs() {
				for port, calls := range callsOf(s.Server) {
					for _, call := range calls {
						got := s.try(t, p, port, call)
						if want := p.outcome(call, mode); got != want {
							t.Errorf("%s with %s: %s, want %s", call, p.name, got, want)
						}
						tried++
					}
				}
			}
			if tried < 11*30 {
				t.Errorf("only %d calls were tried", tried)
			}
			for role, token := range s.roles.Tokens {
				if strings.Contains(s.log.String(), token) || strings.Contains(s.audit.String(), token) ||
					strings.Contains(s.log.String(), roles.HashToken(token)) {
					t.Errorf("the token of %s is in a log", role)
				}
			}
		})
	}
}

// clientTLS returns how a caller connects, nil in plain text.
func (s *secured) clientTLS(p proof) *tls.Config {
	if s.mode == "plain" {
		return nil
	}
	c := &tls.Config{RootCAs: s.ca.Pool(), ServerName: "localhost"}
	if p.certificate != "" {
		c.Certificates = []tls.Certificate{s.shown[p.certificate]}
	}
	return c
}

// try makes a call with a proof, and returns what the guard said.
func (s *secured) try(t *testing.T, p proof, port, call string) string {
	t.Helper()
	if strings.Count(call, ".") > 1 { // a gRPC call has the name of a package
		return s.tryRPC(t, p, port, call)
	}
	at := s.at[port]
	if port == "api" {
		at = s.at["api/web"]
	}
	method := http.MethodGet
	if slices.Contains([]string{"/v1/check", "/v1/check-batch", "/v1/peek", "/v1/report", "/v1/settle", "/json", "/v1/reset", "/v1/cut", "/v1/rehearse", "/v1/apply", "/v1/recover"}, call) {
		method = http.MethodPost
	}
	// Profiles that would take too long are refused at once.
	path := strings.NewReplacer("{limit}", "account-minute", "{$}", "", "{file}", "app.js").Replace(call)
	if call == "/v1/watch" {
		method = http.MethodHead // which ends
	}
	code, _ := s.web(t, p, method, at, path+"?seconds=100", "{}")
	switch code {
	case 401, 403:
		return fmt.Sprint(code)
	}
	return "passed"
}

// web makes an HTTP call.
func (s *secured) web(t *testing.T, p proof, method, at, path, body string) (int, string) {
	t.Helper()
	config := s.clientTLS(p)
	transport := &http.Transport{TLSClientConfig: config, DisableKeepAlives: true}
	scheme := "http"
	if config != nil {
		scheme = "https"
	}
	q, err := http.NewRequestWithContext(t.Context(), method, scheme+"://"+at+path, strings.NewReader(body))
	suite.Must(t, err)
	q.Header.Set("Content-Type", "application/json")
	if p.token != "" {
		q.Header.Set("Authorization", "Bearer "+p.token)
	}
	r, err := (&http.Client{Transport: transport}).Do(q)
	suite.Must(t, err)
	defer r.Body.Close()
	answer, err := io.ReadAll(r.Body)
	suite.Must(t, err)
	if r.StatusCode == 401 && r.Header.Get("WWW-Authenticate") == "" {
		t.Error("a 401 without WWW-Authenticate")
	}
	return r.StatusCode, string(answer)
}

// dial returns a gRPC connection to a port, and a context with the caller's token.
func (s *secured) dial(t *testing.T, p proof, port string) (*grpc.ClientConn, context.Context, func()) {
	t.Helper()
	at := s.at[port]
	if port == "api" {
		at = s.at["api/rpc"]
	}
	trust := insecure.NewCredentials()
	if config := s.clientTLS(p); config != nil {
		trust = credentials.NewTLS(config)
	}
	conn, err := grpc.NewClient("passthrough:///"+at, grpc.WithTransportCredentials(trust))
	suite.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	if p.token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+p.token)
	}
	return conn, ctx, func() {
		cancel()
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

func (s *secured) tryRPC(t *testing.T, p proof, port, call string) string {
	t.Helper()
	conn, ctx, end := s.dial(t, p, port)
	defer end()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, call,
		grpc.ForceCodecV2(fronts.RawCodec{}))
	if err == nil {
		_ = stream.SendMsg([]byte{})
		_ = stream.CloseSend()
		var answer []byte
		err = stream.RecvMsg(&answer)
	}
	switch status.Code(err) {
	case codes.Unauthenticated:
		return "401"
	case codes.PermissionDenied:
		return "403"
	case codes.Unavailable, codes.Unimplemented, codes.DeadlineExceeded:
		t.Errorf("%s with %s: %v", call, p.name, err)
	}
	return "passed"
}

// TestACertificateOfAnotherAuthority ends the handshake.
func TestACertificateOfAnotherAuthority(t *testing.T) {
	s := startSecured(t, "mtls")
	pair := fixtures.NewAuthority(t).Issue(t, certificateOf(roles.Admin))
	for _, at := range s.at {
		conn, err := tls.Dial("tcp", at, &tls.Config{RootCAs: s.ca.Pool(), ServerName: "localhost",
			NextProtos:           []string{"h2", "http/1.1"},
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }})
		if err == nil { // with TLS 1.3 the server says so after the client's handshake
			_, err = conn.Read(make([]byte, 1))
			_ = conn.Close()
		}
		if err == nil || errors.Is(err, io.EOF) || !strings.Contains(err.Error(), "tls: ") {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// TestDomainsOfACaller: a caller cannot spend what is another's, by any call, nor have it given
// back or reset.
func TestDomainsOfACaller(t *testing.T) {
	s := startSecured(t, "plain")
	tenant := proof{token: s.roles.Tokens["tenant"]}
	post := func(path, body string) (int, string) {
		return s.web(t, tenant, "POST", s.at["api/web"], path, body)
	}
	for _, path := range []string{"/v1/check", "/v1/peek"} {
		if code, got := post(path, `{"domain":"api","descriptors":{"account":"42"}}`); code != 403 || !strings.Contains(got, "may not name this domain") {
			t.Errorf("%s of another's domain: %d %s", path, code, got)
		}
		if code, got := post(path, `{"domain":"web","descriptors":{"account":"42"}}`); code != 200 {
			t.Errorf("%s of its own domain: %d %s", path, code, got)
		}
	}
	if code, got := post("/v1/settle", `{"receipt":"`+fronts.Receipt+`","used":0}`); code != 403 {
		t.Errorf("a settlement of another's: %d %s", code, got)
	}
	code, got := post("/v1/check-batch", `{"requests":[{"domain":"web"},{"domain":"api"}]}`)
	if code != 200 || strings.Count(got, `"reason":"invalid_request"`) != 1 || !strings.Contains(got, "domain: is none that this caller may name") {
		t.Errorf("a batch with one of another's: %d %s", code, got)
	}
	if code, got := s.web(t, tenant, "POST", s.at["admin"], "/v1/reset", `{"limit":"account-minute","domain":"api"}`); code != 403 {
		t.Errorf("a reset of another's: %d %s", code, got)
	}
	if code, got := s.web(t, tenant, "POST", s.at["admin"], "/v1/reset", `{"limit":"account-minute","domain":"web"}`); code != 200 {
		t.Errorf("a reset of its own: %d %s", code, got)
	}
	conn, ctx, end := s.dial(t, tenant, "api")
	defer end()
	client := quotadv1.NewQuotaServiceClient(conn)
	for _, domain := range []string{"api", "web"} {
		calls := map[string]error{}
		_, calls["Check"] = client.Check(ctx, &quotadv1.CheckRequest{Domain: domain})
		_, calls["Peek"] = client.Peek(ctx, &quotadv1.PeekRequest{Domain: domain})
		_, calls["Take"] = client.Take(ctx, &quotadv1.TakeRequest{Domain: domain, Units: 1})
		want := codes.OK
		if domain == "api" { // that of fronts.Receipt
			_, calls["Settle"] = client.Settle(ctx, &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: new(int64)})
			want = codes.PermissionDenied
		}
		for name, err := range calls {
			if status.Code(err) != want {
				t.Errorf("%s of %s: %v, want %s", name, domain, err, want)
			}
		}
	}
	batch, err := client.CheckBatch(ctx, &quotadv1.CheckBatchRequest{Requests: []*quotadv1.CheckRequest{{Domain: "api"}, {Domain: "web"}}})
	if err != nil || batch.Decisions[0].Reason != quotadv1.Reason_REASON_INVALID_REQUEST || !batch.Decisions[1].Allowed {
		t.Errorf("a batch with one of another's: %v, %v", batch, err)
	}
	if code, got := s.web(t, tenant, "GET", s.at["admin"], "/v1/buckets/account-minute?domain=api", ""); code != 403 {
		t.Errorf("the ledger of another's: %d %s", code, got)
	}
	for _, q := range s.node.Checked {
		if q.Domain == "api" {
			t.Errorf("the node was asked for %+v", q)
		}
	}
}

// fields of an audit line, as a test names them.
func auditLines(t *testing.T, b *bytes.Buffer) (all []string) {
	t.Helper()
	for line := range strings.Lines(b.String()) {
		var e audit.Event
		suite.Must(t, json.Unmarshal([]byte(line), &e))
		host, _, _ := net.SplitHostPort(e.From)
		key := ""
		for _, one := range e.Buckets {
			key += fmt.Sprintf(" %s/%s%v", one.Domain, one.Limit, one.Key)
		}
		all = append(all, fmt.Sprintf("%s by %s from %s:%s%s %s %d", e.Act, e.Who, host, e.Region, key, e.Outcome, e.Units))
	}
	return all
}

// TestEveryActIsAuditedOnce: with who, from where, what, which key and what came of it; and the
// ordinary log has no key.
func TestEveryActIsAuditedOnce(t *testing.T) {
	s := startSecured(t, "plain")
	s.node.Settled = receipts.Settled{Charges: []receipts.SettledCharge{{Limit: "account-minute", Back: quantity.Units(7)}}}
	const key = " api/account-minutemap[account:42]"
	const bucket = `{"limit":"account-minute","domain":"api","descriptors":{"account":"42"}}`
	as := func(role roles.Role) proof { return proof{token: s.roles.Tokens[role]} }
	post := func(role roles.Role, path, body string) func() {
		at := s.at["admin"]
		if path == "/v1/settle" {
			at = s.at["api/web"]
		}
		return func() { s.web(t, as(role), "POST", at, path, body) }
	}
	rpc := func(role roles.Role, port string, call func(ctx context.Context, conn *grpc.ClientConn)) func() {
		return func() {
			conn, ctx, end := s.dial(t, as(role), port)
			defer end()
			call(ctx, conn)
		}
	}
	for _, c := range []struct {
		name string
		do   func()
		want string // empty: no act
	}{
		{"reset", post("operate", "/v1/reset", bucket), "reset by the-operate from 127.0.0.1:" + key + " done 31"},
		{"reset of no bucket", post("admin", "/v1/reset", strings.Replace(bucket, "account-minute", "x", 1)),
			"reset by the-admin from 127.0.0.1: api/xmap[account:42] failed 0"},
		{"reset of another's", post("tenant", "/v1/reset", bucket), "reset by the-tenant from 127.0.0.1:" + key + " refused 0"},
		{"settle", post("check", "/v1/settle", `{"receipt":"`+fronts.Receipt+`","used":0}`), "settle by the-check from 127.0.0.1:" + key + " done 7"},
		{"settle of another's", post("tenant", "/v1/settle", `{"receipt":"`+fronts.Receipt+`","used":0}`), "settle by the-tenant from 127.0.0.1:" + key + " refused 0"},
		{"settle over gRPC", rpc("check", "api", func(ctx context.Context, conn *grpc.ClientConn) {
			_, _ = quotadv1.NewQuotaServiceClient(conn).Settle(ctx, &quotadv1.SettleRequest{Receipt: fronts.Receipt, Used: new(int64)})
		}), "settle by the-check from 127.0.0.1:" + key + " done 7"},
		{"cut", post("operate", "/v1/cut", `{"region":"eu","for":"5s"}`), "cut by the-operate from 127.0.0.1:eu done 0"},
		{"heal", post("operate", "/v1/cut", `{"region":"eu","heal":true}`), "heal by the-operate from 127.0.0.1:eu done 0"},
		{"recover", post("admin", "/v1/recover", `{"region":"us-east"}`), "recover by the-admin from 127.0.0.1:us-east done 0"},
		{"recover another region", post("admin", "/v1/recover", `{"region":"eu"}`), ""},
		{"no receipt", post("check", "/v1/settle", `{"receipt":"none","used":0}`), ""},
		{"no cut", post("operate", "/v1/cut", `{"region":"eu"}`), ""},
		{"an unknown caller's reset", func() { s.web(t, proof{}, "POST", s.at["admin"], "/v1/reset", bucket) }, ""},
		{"a check", func() {
			s.web(t, as("check"), "POST", s.at["api/web"], "/v1/check", `{"domain":"api","descriptors":{"account":"42"}}`)
		}, ""},
	} {
		s.audit.Reset()
		c.do()
		got := auditLines(t, s.audit)
		if c.want == "" && len(got) != 0 || c.want != "" && (len(got) != 1 || got[0] != c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	if strings.Contains(s.log.String(), `"42"`) || strings.Contains(s.log.String(), "account:42") {
		t.Errorf("the log has a key: %s", s.log.String())
	}
}

// TestReadinessTellsCallersNothing: where callers are asked who they are, a probe learns only
// whether the node is ready.
func TestReadinessTellsCallersNothing(t *testing.T) {
	s := startSecured(t, "plain")
	s.node.SetReady(errors.New("no answer from 10.0.0.7:6379"))
	if code, got := s.web(t, proof{}, "GET", s.at["api/web"], "/readyz", ""); code != 503 || strings.Contains(got, "10.0.0.7") {
		t.Errorf("%d %s", code, got)
	}
	if code, got := s.web(t, proof{token: s.roles.Tokens["read"]}, "GET", s.at["admin"], "/v1/status", ""); code != 200 ||
		!strings.Contains(got, "10.0.0.7") || !strings.Contains(got, `"roles":{"callers":5}`) {
		t.Errorf("%d %s", code, got)
	}
}

// TestAdminOverHTTP2: operators have HTTP/2 over TLS, and the end waits for none of their streams.
func TestAdminOverHTTP2(t *testing.T) {
	s := startSecured(t, "tls")
	by := &http.Transport{TLSClientConfig: s.clientTLS(proof{}), ForceAttemptHTTP2: true}
	defer by.CloseIdleConnections()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+s.at["admin"]+"/v1/watch", nil)
	suite.Must(t, err)
	q.Header.Set("Authorization", "Bearer "+s.roles.Tokens["read"])
	r, err := by.RoundTrip(q)
	suite.Must(t, err)
	defer r.Body.Close()
	if line, err := bufio.NewReader(r.Body).ReadString('\n'); err != nil || r.StatusCode != 200 || r.ProtoMajor != 2 {
		t.Fatalf("%d %s: %q, %v", r.StatusCode, r.Proto, line, err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}

// BenchmarkGuard is what a call with a token takes, beside one without roles.
func BenchmarkGuard(b *testing.B) {
	callers := fronts.NewRoles(b)
	g, header := callers.Guard("api"), "Bearer "+callers.Tokens[roles.Check]
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Admit("/quotad.v1.QuotaService/Check", roles.Credentials{Authorization: header}); err != nil {
			b.Fatal(err)
		}
	}
}
