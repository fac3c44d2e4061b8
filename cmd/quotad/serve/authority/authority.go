// Package authority makes the certificates of nodes: an authority in a folder, and the nodes'
// certificates in folders of their regions below it.
package authority

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/region/trade/peer"
)

// authority issues certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Written is a certificate and a key in their files.
type Written struct {
	Cert, Key string // paths
	Until     time.Time
}

// backdated is how far the clocks of two nodes may differ if one is to accept the other's
// certificate right after it was made.
const backdated = 5 * time.Minute

func authorityCert(dir string) string { return filepath.Join(dir, "ca.pem") }
func authorityKey(dir string) string  { return filepath.Join(dir, "ca.key") }

// Make makes an authority in a folder. It fails if the folder has one.
func Make(dir string, valid time.Duration) (Written, error) {
	for _, path := range []string{authorityCert(dir), authorityKey(dir)} {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			return Written{}, fmt.Errorf(
				"%s is there already: certificates of the authority it belongs to would be worth nothing; choose another folder", path)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Written{}, err
	}
	template, err := newTemplate(pkix.Name{CommonName: "quotad authority"}, valid)
	if err != nil {
		return Written{}, err
	}
	template.IsCA, template.BasicConstraintsValid, template.MaxPathLenZero = true, true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	a := &authority{cert: template, key: key} // it signs itself
	return a.write(template, key, authorityCert(dir), authorityKey(dir))
}

// readAuthority reads the files that Make wrote.
func readAuthority(dir string) (*authority, error) {
	const mend = "make an authority with: quotad keys ca"
	certDER, err := readPEM(authorityCert(dir), "CERTIFICATE")
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, mend)
	}
	keyDER, err := readPEM(authorityKey(dir), "PRIVATE KEY")
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, mend)
	}
	cert, err := x509.ParseCertificate(certDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", authorityCert(dir), err, mend)
	}
	parsed, err := x509.ParsePKCS8PrivateKey(keyDER)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; %s", authorityKey(dir), err, mend)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok || !key.PublicKey.Equal(cert.PublicKey) || !cert.IsCA {
		return nil, fmt.Errorf(
			"%s and %s do not belong together as certificate and key of an authority; %s",
			authorityCert(dir), authorityKey(dir), mend)
	}
	return &authority{cert: cert, key: key}, nil
}

func readPEM(path, kind string) ([]byte, error) {
	b, err := files.Read(path, peer.MaxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("read the authority: %w", err)
	}
	block, _ := pem.Decode(b)
	if block == nil || block.Type != kind {
		return nil, fmt.Errorf("%s: it does not begin with a %s, as PEM", path,
			strings.ToLower(kind))
	}
	return block.Bytes, nil
}

// Issue makes a node's certificate and key, below the authority's folder in the folder of the
// region. With hosts, names or IP addresses, it serves callers of the API and operators, too: they
// know a node by the host that they call.
func Issue(dir string, who peer.Identity, hosts []string, valid time.Duration) (Written, error) {
	a, err := readAuthority(dir)
	if err != nil {
		return Written{}, err
	}
	uri, err := who.URI()
	if err != nil {
		return Written{}, exit.Usage(fmt.Errorf("%w; give --region and --node as in the node file",
			err))
	}
	template, err := newTemplate(pkix.Name{CommonName: who.String()}, valid)
	if err != nil {
		return Written{}, err
	}
	if template.NotAfter.After(a.cert.NotAfter) {
		return Written{}, exit.Usage(fmt.Errorf(
			"--valid %s is longer than the authority is good for, until %s; give less, or make another authority",
			show.Span(valid), a.cert.NotAfter.Format(time.RFC3339)))
	}
	template.URIs = []*url.URL{uri}
	if err := addHosts(template, hosts); err != nil {
		return Written{}, exit.Usage(err)
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth,
		x509.ExtKeyUsageClientAuth}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Written{}, err
	}
	base := filepath.Join(dir, who.Region, who.Node)
	return a.write(template, key, base+".pem", base+".key")
}

// hostName is a host's name as certificates have it, perhaps for all hosts of a domain.
var hostName = regexp.MustCompile(`^(\*\.)?[A-Za-z0-9]([A-Za-z0-9.-]{0,250}[A-Za-z0-9])?$`)

// addHosts makes a certificate good for a server of these hosts.
func addHosts(template *x509.Certificate, hosts []string) error {
	for _, host := range hosts {
		ip := net.ParseIP(host)
		switch {
		case ip != nil:
			template.IPAddresses = append(template.IPAddresses, ip)
		case hostName.MatchString(host):
			template.DNSNames = append(template.DNSNames, host)
		default:
			return fmt.Errorf("--host %.40q is neither a host's name nor an IP address; write it like "+
				"quota.example.org or 10.0.0.7, without a port", host)
		}
	}
	return nil
}

// newTemplate returns a certificate with the fields that all certificates have.
func newTemplate(subject pkix.Name, valid time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now().UTC()
	return &x509.Certificate{SerialNumber: serial, Subject: subject, NotBefore: now.Add(-backdated),
		NotAfter: now.Add(valid)}, nil
}

// write signs a certificate and writes it and its key to files.
func (a *authority) write(
	template *x509.Certificate, key *ecdsa.PrivateKey, certPath, keyPath string,
) (Written, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		return Written{}, fmt.Errorf("make the certificate: %w", err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Written{}, fmt.Errorf("make the key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(certPath), 0o755); err != nil {
		return Written{}, fmt.Errorf("make the folder: %w; choose another", err)
	}
	if err := replacePEM(keyPath, "PRIVATE KEY", keyDER, 0o600); err != nil {
		return Written{}, err
	}
	done := Written{Cert: certPath, Key: keyPath, Until: template.NotAfter}
	return done, replacePEM(certPath, "CERTIFICATE", der, 0o644)
}

// replacePEM replaces a file at once, because a node may be reading it.
func replacePEM(path, kind string, der []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
			err = fmt.Errorf("write %s: %w", path, err)
		}
	}()
	err = errors.Join(pem.Encode(f, &pem.Block{Type: kind, Bytes: der}), f.Chmod(mode), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
