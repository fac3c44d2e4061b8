package peer

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
)

// Identity is a node's region and its name in that region. A certificate carries it as a URI among
// its subject alternative names: quotad://<region>/<node>. Host names in a certificate mean nothing
// here.
type Identity struct{ Region, Node string }

// scheme is the scheme of the URIs that carry identities.
const scheme = "quotad"

var (
	regionName = regexp.MustCompile(`^[a-z0-9-]{1,63}$`)
	nodeName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)
)

// String returns region/node, the form used in logs.
func (i Identity) String() string { return i.Region + "/" + i.Node }

// URI returns the URI that a certificate of this identity carries. It fails for names that no
// certificate can carry: a region has 1 to 63 lower-case letters, digits and '-', a node 1 to 63
// letters, digits, '.', '_' and '-'.
func (i Identity) URI() (*url.URL, error) {
	switch {
	case !regionName.MatchString(i.Region):
		return nil, fmt.Errorf(
			"region %.70q cannot be named in a certificate: use 1 to 63 lower-case letters, digits and '-'", i.Region)
	case !nodeName.MatchString(i.Node):
		return nil, fmt.Errorf(
			"node %.70q cannot be named in a certificate: use 1 to 63 letters, digits, '.', '_' and '-'", i.Node)
	}
	return &url.URL{Scheme: scheme, Host: i.Region, Path: "/" + i.Node}, nil
}

var (
	errNoIdentity = errors.New(
		"the certificate names no node: it has no URI quotad://<region>/<node> among its subject alternative names")
	errTwoOfThem = errors.New(
		"the certificate names more than one node: one URI quotad://<region>/<node> is allowed")
	errOddIdentity = errors.New(
		"the certificate names no node: its URI must read quotad://<region>/<node> and no more")
)

// IdentityOf returns the one identity that a certificate carries. It does not check whether the
// certificate can be trusted; the caller must.
func IdentityOf(c *x509.Certificate) (Identity, error) {
	var found *Identity
	for _, u := range c.URIs {
		if u.Scheme != scheme {
			continue
		}
		if found != nil {
			return Identity{}, errTwoOfThem
		}
		found = &Identity{Region: u.Host, Node: strings.TrimPrefix(u.Path, "/")}
		if plain, err := found.URI(); err != nil || plain.String() != u.String() {
			return Identity{}, errOddIdentity
		}
	}
	if found == nil {
		return Identity{}, errNoIdentity
	}
	return *found, nil
}
