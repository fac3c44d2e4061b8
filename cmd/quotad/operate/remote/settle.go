package remote

import (
	"net"
	"os"
	"strings"
)

// addressVariables name the environment variables of the listeners' addresses.
var addressVariables = map[string]string{apiListener: "QUOTAD_API_ADDR", adminListener: "QUOTAD_ADDR"}

// usualPorts are those of the listeners where an address has none.
var usualPorts = map[string]string{apiListener: "8080", adminListener: "8083"}

// settle finds out which node to call, and how, once. A flag goes before the environment, and that
// before the default.
func (n *Node) settle() {
	if n.settled {
		return
	}
	n.settled = true
	for _, one := range []struct {
		flag, variable string
		text           *string
	}{{"addr", addressVariables[n.listener], &n.addr}, {"ca", "QUOTAD_CA", &n.trust.CA},
		{"cert", "QUOTAD_CERT", &n.trust.Cert}, {"key", "QUOTAD_KEY", &n.trust.Key}} {
		if set := os.Getenv(one.variable); set != "" && !n.given.Changed(one.flag) {
			*one.text = set
		}
	}
	n.addr = whole(n.addr, usualPorts[n.listener])
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
