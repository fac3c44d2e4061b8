package remote

import (
	"net"
	"os"
	"strings"

	"github.com/quotad/quotad/cmd/quotad/contexts"
)

// addressVariables name the environment variables of the listeners' addresses.
var addressVariables = map[string]string{apiListener: "QUOTAD_API_ADDR", adminListener: "QUOTAD_ADDR"}

// usualPorts are those of the listeners where an address has none.
var usualPorts = map[string]string{apiListener: "8080", adminListener: "8083"}

// settle finds out which node to call, and how, once. A flag goes before the environment, that
// before the context, and that before the default.
func (n *Node) settle() error {
	if n.settled {
		return nil
	}
	n.settled = true
	c, err := n.usedContext()
	if err != nil {
		return err
	}
	addr := c.Admin
	if n.listener == apiListener {
		addr = c.API
	}
	if !n.given.Changed("addr") {
		switch set := os.Getenv(addressVariables[n.listener]); {
		case set != "":
			n.addr = set
		case addr != "":
			n.addr = addr
		}
	}
	for _, one := range []struct {
		flag string
		text *string
		of   string
	}{{"ca", &n.trust.ca, c.CA}, {"cert", &n.trust.cert, c.Cert}, {"key", &n.trust.key, c.Key},
		{"token-file", &n.tokenFile, c.TokenFile}} {
		if !n.given.Changed(one.flag) && one.of != "" {
			*one.text = one.of
		}
	}
	n.addr = whole(n.addr, usualPorts[n.listener])
	return nil
}

// usedContext returns the context that is named by the flag, or the current one, or an empty one. A
// token of the environment goes before that of a context.
func (n *Node) usedContext() (c contexts.Context, err error) {
	path, err := contexts.Path()
	if err != nil {
		if n.context == "" {
			return c, nil // a machine without a home has no contexts
		}
		return c, err
	}
	f, err := contexts.Load(path)
	if err != nil {
		return c, err
	}
	name := n.context
	if name == "" {
		name = f.Current
	}
	if name == "" {
		return c, nil
	}
	if c, err = f.Find(name); err != nil {
		return c, err
	}
	if os.Getenv("QUOTAD_TOKEN") != "" {
		c.TokenFile = ""
	}
	return c, nil
}

// whole adds to an address what people leave out: the scheme, and the port if there is neither
// scheme nor port.
func whole(addr, port string) string {
	if addr == "" || strings.Contains(addr, "://") {
		return addr
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		addr = net.JoinHostPort(strings.Trim(addr, "[]"), port)
	}
	return "http://" + addr
}
