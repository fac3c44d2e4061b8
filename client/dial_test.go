package client_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
)

// unhurried are the options of clients that must not give up on a busy machine.
var unhurried = client.Options{Timeout: 30 * time.Second}

func TestDial(t *testing.T) {
	s := serve(t, &served{name: "n1"})
	c := dialed(t, unhurried, s.at)
	d, err := c.Check(t.Context(), request(5))
	if err != nil || !d.Allowed || d.Remaining != 5 || d.Node != "n1" || d.Epoch != "v1-abc" {
		t.Fatalf("%+v, %v", d, err)
	}
	if len(d.Limits) != 2 || d.Limits[0].Remaining != 3 || !d.Limits[0].Counted ||
		d.Limits[1].Algorithm != "gcra" || d.Limits[1].Counted {
		t.Errorf("limits: %+v", d.Limits)
	}
	suite.Must(t, c.Close())
	if _, err := c.Check(t.Context(), request(5)); status.Code(err) != codes.Canceled {
		t.Errorf("after Close: %v", err)
	}
}

// Calls go to all addresses in turn. One where nobody listens is left out.
func TestSeveralAddresses(t *testing.T) {
	a, b := serve(t, &served{name: "a"}), serve(t, &served{name: "b"})
	c := dialed(t, unhurried, a.at, nobody(t), b.at)
	deadline := time.Now().Add(30 * time.Second)
	for a.count() < 10 || b.count() < 10 {
		if d, err := c.Check(t.Context(), request(1)); err != nil || !d.Allowed {
			t.Fatalf("%+v, %v", d, err)
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d calls to one, %d to the other", a.count(), b.count())
		}
	}
	b.server.Stop()
	// Calls fail that were sent to b before its end was noticed. Then all go to a.
	for inRow := 0; inRow < 20; inRow++ {
		d, err := c.Check(t.Context(), request(1))
		if err != nil {
			inRow = 0
		} else if d.Node != "a" {
			t.Fatalf("with one address left: %+v", d)
		}
		if time.Now().After(deadline) {
			t.Fatalf("with one address left: %v", err)
		}
	}
}

// nobody returns an address where nobody listens.
func nobody(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

// A client of a node that is not there yet finds it when it comes.
func TestDialBeforeTheNodeIsThere(t *testing.T) {
	at := nobody(t)
	c := dialed(t, unhurried, at)
	if _, err := c.Check(t.Context(), request(1)); status.Code(err) != codes.Unavailable {
		t.Fatalf("without a node: %v", err)
	}
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Skip("another process took the address meanwhile")
	}
	serveOn(t, &served{}, l)
	suite.Eventually(t, "the client finds the node that is there now", func() bool {
		_, err := c.Check(t.Context(), request(1))
		return err == nil
	})
}

// A token is sent with each call, over TLS or to the loopback interface.
func TestToken(t *testing.T) {
	ca := fixtures.NewAuthority(t)
	own := ca.Issue(t, &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	o := unhurried
	o.Token = "qt1_secret"
	plain := serve(t, &served{})
	secured := serve(t, &served{}, grpc.Creds(credentials.NewServerTLSFromCert(&own)))
	for name, s := range map[string]*served{"loopback": plain, "TLS": secured} {
		if name == "TLS" {
			o.Credentials = credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})
		} else {
			o.Credentials = nil
		}
		c := dialed(t, o, s.at)
		if _, err := c.Check(t.Context(), request(1)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !slices.Equal(s.tokens, []string{"Bearer qt1_secret"}) {
			t.Errorf("%s: %q", name, s.tokens)
		}
	}
	// Each of several addresses is verified by its own name.
	o.Credentials = credentials.NewTLS(&tls.Config{RootCAs: ca.Pool()})
	if _, err := dialed(t, o, secured.at, nobody(t)).Check(t.Context(), request(1)); err != nil {
		t.Errorf("several addresses over TLS: %v", err)
	}
}

func TestBadOptions(t *testing.T) {
	for _, bad := range []struct {
		o    client.Options
		at   []string
		says string
	}{
		{client.Options{}, nil, "no address"},
		{client.Options{}, []string{"quotad"}, "not HOST:PORT"},
		{client.Options{}, []string{":8081"}, "not HOST:PORT"},
		{client.Options{}, []string{"http://quotad:8081"}, "not HOST:PORT"},
		{client.Options{}, []string{"a:1", "a:1"}, "given twice"},
		{client.Options{}, make([]string, client.MaxAddresses+1), "at most 64"},
		{client.Options{Timeout: -1}, []string{"a:1"}, "Options.Timeout is -1ns"},
		{client.Options{Token: "a\n"}, []string{"localhost:1"}, "line end"},
		{client.Options{Token: strings.Repeat("a", 257)}, []string{"localhost:1"}, "longer than 256"},
		{client.Options{Token: "a"}, []string{"localhost:1", "quotad:8081"},
			"dial quotad:8081: Options.Token would be sent in plain text"},
	} {
		c, err := client.Dial(bad.o, bad.at...)
		if c != nil || err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v: %v, want %q", bad.at, err, bad.says)
		}
		if bad.o.Token != "" && strings.Contains(err.Error(), `"`+bad.o.Token) {
			t.Errorf("the error repeats the token: %v", err)
		}
	}
	c := client.New(newFake(1), client.Options{Timeout: -1})
	if _, err := c.Check(t.Context(), request(1)); err == nil ||
		!strings.Contains(err.Error(), "Options.Timeout") {
		t.Errorf("New: %v", err)
	}
	closed(t, c)
}
