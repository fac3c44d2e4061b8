package peer

import "crypto/tls"

// LoadServer is LoadTLS for a port whose callers are not nodes: the API and the admin listener. Its
// certificate needs no node's identity, because callers know the server by its host name. If there
// are authorities, callers may show certificates, which are then verified. They need not.
func LoadServer(files Files, report func(error)) (*TLS, error) {
	return LoadTLS(files, Identity{}, report)
}

// ServerConfig returns the configuration of a server of LoadServer for these application protocols.
// Every connection is made with the certificate and the authorities in force at that moment.
// Sessions are not resumed, so a caller shows its certificate anew with each connection.
func (t *TLS) ServerConfig(protocols ...string) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			m := t.current()
			c := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: protocols,
				Certificates: []tls.Certificate{m.certificate}, SessionTicketsDisabled: true}
			if m.roots != nil {
				c.ClientAuth, c.ClientCAs = tls.VerifyClientCertIfGiven, m.roots
			}
			return c, nil
		}}
}
