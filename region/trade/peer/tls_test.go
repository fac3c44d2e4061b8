package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// onLoopback serves region us on a real socket until the test ends.
func onLoopback(t *testing.T, as *TLS) (*Server, string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	s := NewServer(Handlers{Exchange: named("us")}, as)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	t.Cleanup(func() {
		s.Close()
		suite.Must(t, <-served)
	})
	return s, l.Addr().String()
}

// callOnce calls region us at an address, with a client of its own.
func callOnce(t *testing.T, as *TLS, address string, m exchange.Message) error {
	t.Helper()
	c := NewClient((&net.Dialer{}).DialContext, as)
	defer c.Close()
	c.SetNodes("us", []string{address})
	ctx, cancel := context.WithTimeout(t.Context(), suite.Patience)
	defer cancel()
	_, err := c.Exchange(ctx, "us", m)
	return err
}

// past turns a certificate into one that has expired.
func past(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
}

// TestMutualTLS: who may call whom, over real sockets.
func TestMutualTLS(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	server := a.issue(us1, nil)
	says := exchange.Message{From: "eu", Node: "n1"}
	for _, test := range []struct {
		name           string
		client, server *TLS
		message        exchange.Message
		code           codes.Code
		want           string
		refused        Refusals
	}{
		{"both are what they say", a.issue(eu1, nil), server, says, codes.OK, "", Refusals{}},
		{"the message is another region's", a.issue(eu1, nil), server,
			exchange.Message{From: "ap", Node: "n1"}, codes.PermissionDenied,
			`the message is from region "ap", and the certificate that of eu/n1`,
			Refusals{OtherRegion: 1}},
		{"the message is nobody's", a.issue(eu1, nil), server, exchange.Message{},
			codes.PermissionDenied, `from region ""`, Refusals{OtherRegion: 1}},
		{"the message is another node's", a.issue(eu1, nil), server,
			exchange.Message{From: "eu", Node: "n2"}, codes.PermissionDenied,
			`the message is from node "n2", and the certificate that of eu/n1`,
			Refusals{OtherNode: 1}},
		{"too many asks", a.issue(eu1, nil), server, exchange.Message{From: "eu", Node: "n1",
			Asks: make([]exchange.Ask, exchange.MaxAsks+1)},
			codes.InvalidArgument, "at most", Refusals{TooManyAsks: 1}},
		{"the server is of another region", a.issue(eu1, nil), a.issue(ap1, nil), says,
			codes.Unavailable,
			"the certificate is that of ap/n1, not of a node of region us",
			Refusals{Handshakes: 1}},
		{"the caller is of another authority", other.issue(eu1, nil, a), server, says,
			codes.Unavailable, "", Refusals{Handshakes: 1}},
		{"the server is of another authority", a.issue(eu1, nil), other.issue(us1, nil, a), says,
			codes.Unavailable,
			"certificate signed by unknown authority", Refusals{Handshakes: 1}},
		{"the server's certificate has expired", a.issue(eu1, nil), a.issue(us1, past), says,
			codes.Unavailable, "certificate has expired", Refusals{Handshakes: 1}},
		{"the caller speaks plain text", nil, server, says, codes.Unavailable, "",
			Refusals{Handshakes: 1}},
		{"the server speaks plain text", a.issue(eu1, nil), nil, says, codes.Unavailable,
			"first record does not look like a TLS handshake", Refusals{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, address := onLoopback(t, test.server)
			err := callOnce(t, test.client, address, test.message)
			if status.Code(err) != test.code || err != nil && !strings.Contains(err.Error(),
				test.want) {
				t.Errorf("%v, want %v: %s", err, test.code, test.want)
			}
			s.Close() // and with it the handshakes under way
			got := s.Refused()
			got.Handshakes = min(got.Handshakes, 1) // a client tries again
			if got != test.refused {
				t.Errorf("refused %+v, want %+v", got, test.refused)
			}
		})
	}
}

// TestOwnCertificateExpired: a node whose own certificate has expired says so itself.
func TestOwnCertificateExpired(t *testing.T) {
	a := newAuthority(t)
	_, address := onLoopback(t, a.issue(us1, nil))
	err := callOnce(t, a.issue(eu1, past), address, exchange.Message{From: "eu", Node: "n1"})
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(),
		"this node's own certificate has expired") {
		t.Error(err)
	}
}

// TestHandshakesRefused: the server refuses handshakes that no client of ours would begin.
func TestHandshakesRefused(t *testing.T) {
	a := newAuthority(t)
	load := func(c *x509.Certificate) []tls.Certificate {
		files := a.write(t.TempDir(), c, a)
		pair, err := tls.LoadX509KeyPair(files.Cert, files.Key)
		suite.Must(t, err)
		return []tls.Certificate{pair}
	}
	forServers := of(eu1)
	forServers.ExtKeyUsage = forServers.ExtKeyUsage[:1]
	expired := of(eu1)
	past(expired)
	for _, test := range []struct {
		name    string
		config  *tls.Config
		refused bool
	}{
		{"as it should be", &tls.Config{Certificates: load(of(eu1))}, false},
		{"TLS 1.2", &tls.Config{Certificates: load(of(eu1)), MaxVersion: tls.VersionTLS12}, true},
		{"no certificate", &tls.Config{}, true},
		{"an expired certificate", &tls.Config{Certificates: load(expired)}, true},
		{"no identity", &tls.Config{Certificates: load(template())}, true},
		{"the identity of something else",
			&tls.Config{Certificates: load(template("spiffe://eu/n1"))}, true},
		{"two identities", &tls.Config{Certificates: load(template("quotad://eu/n1",
			"quotad://us/n1"))}, true},
		{"more than an identity",
			&tls.Config{Certificates: load(template("quotad://eu/n1?region=us"))}, true},
		{"a certificate for servers only", &tls.Config{Certificates: load(forServers)}, true},
		{"no HTTP/2", &tls.Config{Certificates: load(of(eu1)), NextProtos: []string{"http/1.1"}},
			true},
	} {
		t.Run(test.name, func(t *testing.T) {
			s, address := onLoopback(t, a.issue(us1, nil))
			test.config.InsecureSkipVerify = true
			if test.config.NextProtos == nil {
				test.config.NextProtos = []string{"h2"}
			}
			conn, err := tls.Dial("tcp", address, test.config)
			if err == nil {
				// With TLS 1.3 a client's handshake ends before the server looks at its
				// certificate.
				_, err = conn.Read(make([]byte, 1))
				_ = conn.Close()
			}
			s.Close() // and with it the handshakes under way
			if (err != nil) != test.refused ||
				s.Refused().Handshakes != map[bool]uint64{true: 1}[test.refused] {
				t.Errorf("%v, %+v; refused should be %v", err, s.Refused(), test.refused)
			}
		})
	}
}

// TestLoadTLSRefuses: files that do not belong together, or not to the node, are refused with an
// error that says what to do.
func TestLoadTLSRefuses(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	for _, test := range []struct {
		name, want string
		files      func(folder string) Files
	}{
		{"no file", "read the key of the certificate: open", func(folder string) Files {
			f := a.write(folder, of(us1), a)
			return Files{Cert: f.Cert, Key: f.Key + "x", CA: f.CA}
		}},
		{"no certificate", "give a certificate and its own key, both PEM",
			func(folder string) Files {
				f := a.write(folder, of(us1), a)
				put(t, f.Cert, []byte("none"))
				return f
			}},
		{"another's key", "private key does not match public key", func(folder string) Files {
			f := a.write(folder, of(us1), a)
			f.Key = a.write(t.TempDir(), of(us1), a).Key
			return f
		}},
		{"no authority", "holds no certificate; give that of the authority",
			func(folder string) Files { return a.write(folder, of(us1)) }},
		{"another authority", "signed by unknown authority",
			func(folder string) Files { return a.write(folder, of(us1), other) }},
		{"another node", "is that of us/n2, and this node is us/n1",
			func(folder string) Files { return a.write(folder, of(Identity{"us", "n2"}), a) }},
		{"no node", "names no node",
			func(folder string) Files { return a.write(folder, template("https://us/n1"), a) }},
		{"for servers only", "incompatible key usage", func(folder string) Files {
			c := of(us1)
			c.ExtKeyUsage = c.ExtKeyUsage[:1]
			return a.write(folder, c, a)
		}},
	} {
		if _, err := LoadTLS(test.files(t.TempDir()), us1, nil); err == nil ||
			!strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
}

// TestIntermediate: a certificate may be that of an authority below the one that is trusted.
func TestIntermediate(t *testing.T) {
	root := newAuthority(t)
	c := *root.Leaf
	c.Subject.CommonName = "below"
	below := &authority{t, fixtures.Authority{Certificate: root.Issue(t, &c)}}
	files := below.write(t.TempDir(), of(eu1), root)
	leaf, err := os.ReadFile(files.Cert)
	suite.Must(t, err)
	put(t, files.Cert, append(leaf, below.PEM()...))
	as, err := LoadTLS(files, eu1, nil)
	suite.Must(t, err)
	_, address := onLoopback(t, root.issue(us1, nil))
	if err := callOnce(t, as, address, exchange.Message{From: "eu", Node: "n1"}); err != nil {
		t.Error(err)
	}
}

// TestIdentity: names go into a certificate's URI and come back, or are refused.
func TestIdentity(t *testing.T) {
	for _, test := range []struct {
		Identity
		want string
	}{
		{us1, "quotad://us/n1"},
		{Identity{"us-east-1", "Node_1.example"}, "quotad://us-east-1/Node_1.example"},
		{Identity{"us", ".."}, "quotad://us/.."},
		{Identity{"", "n1"}, ""}, {Identity{"us", ""}, ""}, {Identity{"US", "n1"}, ""},
		{Identity{"us:1", "n1"}, ""}, {Identity{"a@us", "n1"}, ""},
		{Identity{"us", "n/1"}, ""}, {Identity{"us", "n?1"}, ""}, {Identity{"us", "n%31"}, ""},
		{Identity{strings.Repeat("u", 64), "n1"}, ""},
	} {
		u, err := test.URI()
		if test.want == "" {
			if err == nil {
				t.Errorf("%q is given %v", test.Identity, u)
			}
			continue
		}
		if err != nil || u.String() != test.want {
			t.Errorf("%q is given %v, %v; want %s", test.Identity, u, err, test.want)
			continue
		}
		if got, err := IdentityOf(template(u.String())); err != nil ||
			!reflect.DeepEqual(got, test.Identity) {
			t.Errorf("%s is read as %q, %v", u, got, err)
		}
	}
	for _, odd := range []string{"quotad://us", "quotad://us/", "quotad:us/n1", "quotad:///n1",
		"quotad://us/n1/", "quotad://us/n1#a", "quotad://u@us/n1",
		"quotad://us/n%31", "quotad://us/n1?", "quotad://us:1/n1"} {
		if who, err := IdentityOf(template(odd)); err == nil {
			t.Errorf("%s is read as %q", odd, who)
		}
	}
}

// TestQuestionsAreAuthenticated: a question about lost buckets is refused in another name, as a
// message is.
func TestQuestionsAreAuthenticated(t *testing.T) {
	a := newAuthority(t)
	s, address := onLoopback(t, a.issue(us1, nil))
	c := NewClient((&net.Dialer{}).DialContext, a.issue(eu1, nil))
	defer c.Close()
	c.SetNodes("us", []string{address})
	for _, q := range []exchange.Question{{From: "ap", Node: "n1"}, {From: "eu", Node: "n2"}} {
		if _, err := c.Recall(t.Context(), "us", q); status.Code(err) != codes.PermissionDenied {
			t.Errorf("a question of %s/%s: %v", q.From, q.Node, err)
		}
	}
	if got, want := s.Refused(), (Refusals{OtherRegion: 1, OtherNode: 1}); got != want {
		t.Errorf("refused %+v, want %+v", got, want)
	}
}
