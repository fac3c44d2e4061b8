// Package odd makes requests as no honest client sends them: with control bytes, doubles, sizes,
// encodings and lies. The tests of the recipes in deploy send them through real proxies, none of
// which may pass one that quotad did not decide.
package odd

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Request is one request as bytes for a connection.
type Request struct {
	// Kinds names what is odd about it.
	Kinds []string
	Bytes []byte
	// Open says that a server may wait for more: whoever sends it should close its side.
	Open bool
}

// Generator makes requests. The same seed makes the same ones. Not safe for concurrent use.
type Generator struct {
	random *rand.Rand
	host   string
}

// New returns a generator of requests to a host, which they name unless that is what is odd.
func New(seed uint64, host string) *Generator {
	return &Generator{rand.New(rand.NewPCG(seed, 0)), host}
}

// message is a request that is being made.
type message struct {
	method, target, version string
	headers                 []string // whole lines
	body                    string
	eol                     string
	twice, open             bool
}

// Next makes a request with one to three oddities.
func (g *Generator) Next() Request {
	m := &message{method: g.one("GET", "GET", "POST"), target: g.one("/", "/page?a=b", "/login"),
		version: "HTTP/1.1", headers: []string{"Host: " + g.host}, eol: "\r\n"}
	if m.method == "POST" {
		m.body = "name=somebody"
		m.headers = append(m.headers, fmt.Sprintf("Content-Length: %d", len(m.body)))
	}
	var r Request
	for range 1 + g.random.IntN(3) {
		k := kinds[g.random.IntN(len(kinds))]
		k.apply(g, m)
		r.Kinds = append(r.Kinds, k.name)
	}
	r.Bytes, r.Open = m.bytes(), m.open
	return r
}

// bytes writes the message. Of two that come at once, the last says that the connection ends.
func (m *message) bytes() []byte {
	var b strings.Builder
	write := func(headers ...string) {
		b.WriteString(strings.TrimSpace(m.method+" "+m.target+" "+m.version) + m.eol)
		for _, line := range append(headers, m.headers...) {
			b.WriteString(line + m.eol)
		}
		b.WriteString(m.eol + m.body)
	}
	if m.twice {
		write()
	}
	write("Connection: close")
	return []byte(b.String())
}

// one returns one of the texts.
func (g *Generator) one(all ...string) string { return all[g.random.IntN(len(all))] }

// control returns a byte that has no place in a text: a control byte, or one above ASCII.
func (g *Generator) control() string {
	if b := g.random.IntN(64); b > 33 {
		return string([]byte{byte(128 + g.random.IntN(128))})
	} else if b == 33 {
		return "\x7f"
	} else {
		return string([]byte{byte(b)})
	}
}

// long returns a text of up to 40 kB, which is more than proxies and quotad take.
func (g *Generator) long() string {
	return strings.Repeat(g.one("a", "a/", "%61", "é", "; a=b"), 1+g.random.IntN(8<<10))
}

// inside puts a text somewhere into another one.
func (g *Generator) inside(text, put string) string {
	at := g.random.IntN(len(text) + 1)
	return text[:at] + put + text[at:]
}

// add adds a line to the headers, before or behind the others.
func (g *Generator) add(m *message, line string) {
	if g.random.IntN(2) == 0 {
		m.headers = append([]string{line}, m.headers...)
		return
	}
	m.headers = append(m.headers, line)
}
