package serving

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/trade/peer"
)

// LoadPeerTLS reads the certificates for calls between regions, and returns nil if none are
// configured. It logs when the files are replaced, and when new ones cannot be used.
func LoadPeerTLS(c *nodeconfig.Config, log *slog.Logger) (*peer.TLS, error) {
	if c.PeerTLS == (peer.Files{}) {
		return nil, nil
	}
	loaded, err := peer.LoadTLS(c.PeerTLS, peer.Identity{Region: c.Region, Node: c.Node},
		func(err error) {
			if err != nil {
				log.Error("the new certificates for calls between regions are not in force; the last good ones stay", "err", err)
				return
			}
			log.Info("other certificates are in force for calls between regions")
		})
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("peer_tls: %w", err))
	}
	return loaded, nil
}

// earlyWarning is how long before its end a certificate causes a warning.
const earlyWarning = 7 * 24 * time.Hour

// expiryWarning returns a warning if a certificate ends soon.
func expiryWarning(of string, t *peer.TLS) []string {
	if t == nil || time.Until(t.Expires()) > earlyWarning {
		return nil
	}
	word := "ends"
	if time.Now().After(t.Expires()) {
		word = "ended"
	}
	return []string{fmt.Sprintf(
		"the certificate %s %s at %s, and calls with it; replace the file, no restart is needed",
		of, word, t.Expires().UTC().Format(time.RFC3339))}
}

// peerTrust says how calls between regions are protected.
func peerTrust(t *peer.TLS) string {
	if t == nil {
		return "plain text"
	}
	return "TLS, certificate until " + t.Expires().UTC().Format(time.RFC3339)
}

// portTrust says how a port for callers or operators is protected.
func portTrust(t *peer.TLS, guard *roles.Guard) string {
	how := peerTrust(t)
	if guard == nil {
		return how + ", for everybody who reaches it"
	}
	return how
}

// rolesInWords says who may do what.
func rolesInWords(c *nodeconfig.Config, p *protection) string {
	if p.roles == nil {
		return "none: who may call a port may do all that it serves"
	}
	return fmt.Sprintf("%s: %s", c.Roles, show.Counted(p.roles.Callers().Count(), "caller"))
}

// loadRedisTLS reads the certificates for the region's Redis, and returns nil if none are
// configured.
func loadRedisTLS(c *nodeconfig.Config) (*tls.Config, error) {
	if c.Redis.Embedded {
		return nil, nil
	}
	return loadClientTLS(c, "redis.tls", c.Redis.TLS)
}

// loadClientTLS reads the certificates for calls to a server, which a group of settings names, and
// returns nil if it names none.
func loadClientTLS(c *nodeconfig.Config, group string, named peer.Files) (*tls.Config, error) {
	if named.CA == "" && named.Cert == "" {
		return nil, nil
	}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	if named.CA != "" {
		b, err := files.Read(named.CA, peer.MaxFileBytes)
		if err != nil {
			return nil, exit.Usage(c.Fail(group+".ca", err.Error(),
				"check the path, and that the user quotad runs as may read the file"))
		}
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(b) {
			return nil, exit.Usage(c.Fail(group+".ca", "the file holds no certificate",
				"give that of the authority, as PEM"))
		}
	}
	if named.Cert != "" {
		pair, err := loadPair(named.Cert, named.Key)
		if err != nil {
			return nil, exit.Usage(c.Fail(group+".cert", err.Error(),
				"give a certificate and its own key, both PEM"))
		}
		t.Certificates = []tls.Certificate{pair}
	}
	return t, nil
}

// loadPair reads a certificate and its key.
func loadPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := files.Read(certFile, peer.MaxFileBytes)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := files.Read(keyFile, peer.MaxFileBytes)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
