package peer

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc/credentials"
)

// proof implements the credentials of one side of a connection.
type proof struct {
	tls    *TLS
	region string // the region that is called; empty at a server
	failed func() // called when a handshake fails; nil at a client
}

// caller is what a server knows of the other end of a connection.
type caller struct {
	credentials.TLSInfo
	Identity
}

// config returns what both sides have in common. TLS sessions are not resumed, so that every
// connection is made with the certificates and authorities in force now.
func (p proof) config(m *material) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{m.certificate},
		SessionTicketsDisabled: true}
}

// ClientHandshake implements credentials.TransportCredentials.
func (p proof) ClientHandshake(ctx context.Context, authority string, raw net.Conn) (net.Conn,
	credentials.AuthInfo, error) {
	m := p.tls.current()
	if end := m.certificate.Leaf.NotAfter; time.Now().After(end) {
		return nil, nil, fmt.Errorf("this node's own certificate has expired at %s; issue another",
			end.Format(time.RFC3339))
	}
	c := p.config(m)
	// The library would check the name of a host, which does not identify a node. VerifyConnection
	// checks everything else that the library would.
	c.InsecureSkipVerify = true
	c.VerifyConnection = func(s tls.ConnectionState) error {
		if err := m.verify(s.PeerCertificates, x509.ExtKeyUsageServerAuth, time.Now()); err != nil {
			return err
		}
		who, err := IdentityOf(s.PeerCertificates[0])
		if err != nil {
			return err
		}
		if who.Region != p.region {
			return fmt.Errorf("the certificate is that of %s, not of a node of region %s", who,
				p.region)
		}
		return nil
	}
	// Send the certificate whichever authorities the server asks for. A server of another authority
	// then says why it refuses, instead of missing a certificate.
	c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate,
		error) {
		return &m.certificate, nil
	}
	return p.finish(m)(credentials.NewTLS(c).ClientHandshake(ctx, authority, raw))
}

// ServerHandshake implements credentials.TransportCredentials.
func (p proof) ServerHandshake(raw net.Conn) (net.Conn, credentials.AuthInfo, error) {
	m := p.tls.current()
	c := p.config(m)
	c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, m.roots
	conn, info, err := p.finish(m)(credentials.NewTLS(c).ServerHandshake(raw))
	if err != nil {
		p.failed()
	}
	return conn, info, err
}

var errNoTLS = errors.New("the handshake did not tell who the other side is")

// finish records the identity of the other end, which must be a node. The connection ends when the
// first of the two certificates expires.
func (p proof) finish(m *material) func(net.Conn, credentials.AuthInfo, error) (net.Conn,
	credentials.AuthInfo, error) {
	return func(conn net.Conn, info credentials.AuthInfo, err error) (net.Conn,
		credentials.AuthInfo, error) {
		if err != nil {
			return nil, nil, err
		}
		shaken, ok := info.(credentials.TLSInfo)
		if !ok || len(shaken.State.PeerCertificates) == 0 {
			_ = conn.Close()
			return nil, nil, errNoTLS
		}
		theirs := shaken.State.PeerCertificates[0]
		who, err := IdentityOf(theirs)
		if err != nil {
			_ = conn.Close()
			return nil, nil, err
		}
		end := m.certificate.Leaf.NotAfter
		if theirs.NotAfter.Before(end) {
			end = theirs.NotAfter
		}
		return endAt(conn, end), caller{shaken, who}, nil
	}
}

// Info implements credentials.TransportCredentials.
func (p proof) Info() credentials.ProtocolInfo { return credentials.NewTLS(nil).Info() }

// Clone implements credentials.TransportCredentials.
func (p proof) Clone() credentials.TransportCredentials { return p }

// OverrideServerName implements credentials.TransportCredentials. It does nothing: no host name is
// checked.
func (p proof) OverrideServerName(string) error { return nil }

// mortal is a connection that is closed at a set time.
type mortal struct {
	net.Conn
	end *time.Timer
}

// endAt returns a connection that is closed at the given time.
func endAt(c net.Conn, at time.Time) mortal {
	return mortal{c, time.AfterFunc(time.Until(at), func() { _ = c.Close() })}
}

// Close implements net.Conn.
func (m mortal) Close() error {
	m.end.Stop()
	return m.Conn.Close()
}
