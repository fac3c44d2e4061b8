package proxies

import (
	"fmt"
	"strings"
)

// oddKind is one way in which a request is odd.
type oddKind struct {
	name  string
	apply func(g *oddities, m *oddMessage)
}

// The headers in which proxies speak to quotad, and those that may say something to it.
var spoken = []string{"X-Account", "X-Forwarded-For", "X-Forwarded-Uri", "X-Forwarded-Method",
	"X-Forwarded-Host", "X-Original-Uri", "X-Real-Ip", "Forwarded", "Quotad-Undecided",
	"X-Quotad-Answered", "Grpc-Timeout", "Authorization", "Origin"}

var oddKinds = []oddKind{
	{"method", func(g *oddities, m *oddMessage) {
		m.method = g.one("HEAD", "PUT", "OPTIONS", "DELETE", "TRACE", "CONNECT", "PRI", "BREW", "get",
			"M-SEARCH", "G T", "", strings.Repeat("A", 5000), g.inside("GET", g.control()))
	}},
	{"target", func(g *oddities, m *oddMessage) {
		m.target = g.one("*", "", "http://"+g.host+"/login", "https://elsewhere.example.org/",
			"http://", "//", "///login", "/./login", "/a/../login", "/..", "/../../login", `/\login`,
			"/%6cogin", "/%2e%2e/login", "/login%00", "/%zz", "/%", "/login;a=b", "/login/", "/LOGIN",
			"login", "/a b", "/#login", "/%c0%ae/", "/?", g.host)
	}},
	{"byte in the target", func(g *oddities, m *oddMessage) {
		m.target = g.inside(m.target, g.control())
	}},
	{"query", func(g *oddities, m *oddMessage) {
		m.target += g.one("?deny=403", "?deny=403&deny=200", "?deny=%34%30%33", "?a=%zz", "?a;b",
			"?a=b#deny=403", "?"+g.control(), "?"+g.long())
	}},
	{"long target", func(g *oddities, m *oddMessage) { m.target += "/" + g.long() }},
	{"version", func(g *oddities, m *oddMessage) {
		m.version = g.one("HTTP/1.0", "HTTP/0.9", "HTTP/1.9", "HTTP/2.0", "HTTP/3", "http/1.1",
			"HTTP/1.1 ", "", "HTTP/1.1 HTTP/1.1", g.inside("HTTP/1.1", g.control()))
	}},
	{"no host", func(g *oddities, m *oddMessage) { m.dropHost() }},
	{"two hosts", func(g *oddities, m *oddMessage) {
		g.add(m, "Host: "+g.one(g.host, "elsewhere.example.org", ""))
	}},
	{"byte in the host", func(g *oddities, m *oddMessage) {
		m.dropHost()
		g.add(m, "Host: "+g.inside(g.host, g.control()))
	}},
	{"host", func(g *oddities, m *oddMessage) {
		m.dropHost()
		g.add(m, "Host: "+g.one("", " ", "a@"+g.host, "["+g.host+"]", "[::1", g.host+":", g.host+":x",
			g.host+", "+g.host, strings.ToUpper(g.host)+".", "a/b", "a?b", "%31", g.long()))
	}},
	{"byte in a header", func(g *oddities, m *oddMessage) {
		g.add(m, g.one("X-Api-Key", "Cookie", "User-Agent", "Accept", "Content-Type")+": "+
			g.inside("key-of-acme", g.control()))
	}},
	{"byte in a name", func(g *oddities, m *oddMessage) {
		g.add(m, g.inside("X-Api-Key", g.control())+": key-of-acme")
	}},
	{"two keys", func(g *oddities, m *oddMessage) {
		for range 2 {
			g.add(m, g.one("X-Api-Key", "x-api-key", "X_Api_Key", "X-API-KEY")+": "+
				g.one("key-of-acme", "key-of-globex", "", "key-of-acme,key-of-globex"))
		}
	}},
	{"cookies", func(g *oddities, m *oddMessage) {
		for range 1 + g.random.IntN(4) {
			g.add(m, "Cookie: "+g.one("a=b", "a", "=", "a=\x01", "session="+g.long(), g.long()))
		}
	}},
	{"large headers", func(g *oddities, m *oddMessage) { g.add(m, "X-Large: "+g.long()) }},
	{"many headers", func(g *oddities, m *oddMessage) {
		for i := range g.random.IntN(1000) {
			m.headers = append(m.headers, fmt.Sprintf("X-Many-%d: %d", i, i))
		}
	}},
	{"lies", func(g *oddities, m *oddMessage) {
		for range 1 + g.random.IntN(4) {
			g.add(m, g.one(spoken...)+": "+g.one("127.0.0.1", "GET", "/", "yes", "1n", "victim",
				"queue_full", g.control(), g.long()))
		}
	}},
	{"removal", func(g *oddities, m *oddMessage) {
		g.add(m, "Connection: "+strings.Join(spoken, ", ")+", Host, X-Api-Key")
	}},
	{"length", func(g *oddities, m *oddMessage) {
		g.add(m, "Content-Length: "+g.one("0", "1", "-1", "+1", "1e3", "0x1", "99999999999999999999",
			"1, 1", "", "4096"))
		m.open = true
	}},
	{"chunks", func(g *oddities, m *oddMessage) {
		g.add(m, g.one("Transfer-Encoding: ", "Transfer-Encoding : ", "Transfer-encoding:\t")+
			g.one("chunked", "Chunked", "gzip, chunked", "chunked, chunked", "identity", "x"))
		m.body = g.one("0\r\n\r\n", "1\r\na\r\n0\r\n\r\n", "zz\r\n", "1\r\n", "0\r\nX-Account: a\r\n\r\n")
		m.open = true
	}},
	{"line", func(g *oddities, m *oddMessage) {
		g.add(m, g.one("no colon", ": no name", " folded", "\tfolded", "X-Api-Key : key-of-acme",
			"X-Api-Key:", "\r", "a:b\rX-Account: victim", "a: b\nX-Account: victim"))
	}},
	{"ends of lines", func(g *oddities, m *oddMessage) { m.eol = g.one("\n", "\n", "\r", "\n\r") }},
	{"expectations", func(g *oddities, m *oddMessage) {
		g.add(m, g.one("Expect: 100-continue", "Expect: x", "Upgrade: websocket", "Upgrade: h2c",
			"Connection: Upgrade, HTTP2-Settings", "TE: trailers", "Range: bytes=0-0", "Max-Forwards: 0",
			"If-None-Match: *", "Accept-Encoding: x", "Sec-Fetch-Site: cross-site"))
	}},
	{"two at once", func(g *oddities, m *oddMessage) { m.twice = true }},
}

// dropHost removes what says the host.
func (m *oddMessage) dropHost() {
	kept := m.headers[:0]
	for _, line := range m.headers {
		if !strings.HasPrefix(line, "Host:") {
			kept = append(kept, line)
		}
	}
	m.headers = kept
}
