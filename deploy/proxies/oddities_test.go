package proxies

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// oddRequest is one request as bytes for a connection.
type oddRequest struct {
	// Kinds names what is odd about it.
	Kinds []string
	Bytes []byte
	// Open says that a server may wait for more: whoever sends it should close its side.
	Open bool
}

// oddities makes requests as no honest client sends them: with control bytes, doubles, sizes,
// encodings and lies. No proxy may pass one that quotad did not decide. The same seed makes the same
// ones. Not safe for concurrent use.
type oddities struct {
	random *rand.Rand
	host   string
}

// newOddities returns a generator of requests to a host, which they name unless that is what is odd.
func newOddities(seed uint64, host string) *oddities {
	return &oddities{rand.New(rand.NewPCG(seed, 0)), host}
}

// oddMessage is a request that is being made.
type oddMessage struct {
	method, target, version string
	headers                 []string // whole lines
	body                    string
	eol                     string
	twice, open             bool
}

// next makes a request with one to three oddities.
func (g *oddities) next() oddRequest {
	m := &oddMessage{method: g.one("GET", "GET", "POST"), target: g.one("/", "/page?a=b", "/login"),
		version: "HTTP/1.1", headers: []string{"Host: " + g.host}, eol: "\r\n"}
	if m.method == "POST" {
		m.body = "name=somebody"
		m.headers = append(m.headers, fmt.Sprintf("Content-Length: %d", len(m.body)))
	}
	var r oddRequest
	for range 1 + g.random.IntN(3) {
		k := oddKinds[g.random.IntN(len(oddKinds))]
		k.apply(g, m)
		r.Kinds = append(r.Kinds, k.name)
	}
	r.Bytes, r.Open = m.bytes(), m.open
	return r
}

// bytes writes the oddMessage. Of two that come at once, the last says that the connection ends.
func (m *oddMessage) bytes() []byte {
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
func (g *oddities) one(all ...string) string { return all[g.random.IntN(len(all))] }

// control returns a byte that has no place in a text: a control byte, or one above ASCII.
func (g *oddities) control() string {
	if b := g.random.IntN(64); b > 33 {
		return string([]byte{byte(128 + g.random.IntN(128))})
	} else if b == 33 {
		return "\x7f"
	} else {
		return string([]byte{byte(b)})
	}
}

// long returns a text of up to 40 kB, which is more than proxies and quotad take.
func (g *oddities) long() string {
	return strings.Repeat(g.one("a", "a/", "%61", "é", "; a=b"), 1+g.random.IntN(8<<10))
}

// inside puts a text somewhere into another one.
func (g *oddities) inside(text, put string) string {
	at := g.random.IntN(len(text) + 1)
	return text[:at] + put + text[at:]
}

// add adds a line to the headers, before or behind the others.
func (g *oddities) add(m *oddMessage, line string) {
	if g.random.IntN(2) == 0 {
		m.headers = append([]string{line}, m.headers...)
		return
	}
	m.headers = append(m.headers, line)
}

// TestOddities: a seed makes the same requests each time and another one others; every oddKind of
// oddity occurs; and net/http, which reads as quotad does, takes some of them and refuses others.
func TestOddities(t *testing.T) {
	first, again, other := newOddities(1, "h"), newOddities(1, "h"), newOddities(2, "h")
	seen := map[string]bool{}
	differ, read, refused := false, 0, 0
	for range 2000 {
		r := first.next()
		if !reflect.DeepEqual(r, again.next()) {
			t.Fatal("the same seed makes another request")
		}
		differ = differ || !bytes.Equal(r.Bytes, other.next().Bytes)
		for _, k := range r.Kinds {
			seen[k] = true
		}
		if _, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(r.Bytes))); err == nil {
			read++
		} else {
			refused++
		}
	}
	if !differ || len(seen) != len(oddKinds) || read < 500 || refused < 500 {
		t.Errorf("seeds differ: %v, %d of %d oddKinds, %d read and %d refused", differ, len(seen),
			len(oddKinds), read, refused)
	}
}
