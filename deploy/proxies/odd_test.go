//go:build proxies

package proxies

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

const (
	oddRequests = 10_000
	oddSenders  = 8
	oddSeed     = 1
	// oddPatience bounds one request: what a proxy does not answer it waits for more of.
	oddPatience = 2 * time.Second
)

// counter takes what proxies pass on: all of it, also what no server would read.
type counter struct {
	net.Listener
	mu      sync.Mutex
	arrived [][]byte // how each request begins
}

func startCounter(t *testing.T) *counter {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	t.Cleanup(func() { _ = l.Close() })
	c := &counter{Listener: l}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.take(conn)
		}
	}()
	return c
}

// take counts a connection on which a byte comes, and answers it.
func (c *counter) take(conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTimeout))
	in := make([]byte, 2000)
	n, err := conn.Read(in)
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.arrived = append(c.arrived, in[:n])
	c.mu.Unlock()
	_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
	if c, is := conn.(*net.TCPConn); is && err == nil {
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
	}
}

func (c *counter) all() [][]byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.arrived)
}

// TestProxiesPassNothingOdd: of requests as no honest client sends them, none passes that quotad did
// not admit. It admits two of each kind, so what more arrives has slipped through.
func TestProxiesPassNothingOdd(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		t.Run(name, func(t *testing.T) {
			at := startCounter(t)
			s := &stage{t: t, service: at.Addr().String()}
			s.decideBy(exhausted)
			s.start(recipes[name], slices.Concat(recipes[name].cookie, recipes[name].patient)...)
			codes, times := s.sendOdd(newOddities(oddSeed, s.address))
			arrived, admitted, undecided := at.all(), s.admitted(t), s.undecided(t)
			decided := s.decided(t)
			fmt.Printf("%s: %d odd requests: %d decided, %d admitted, %d undecided for want of time, %d arrived; "+
				"clients saw %v; longest %v\n", name, oddRequests, decided, admitted, undecided, len(arrived),
				codes, times.Round(time.Millisecond))
			if len(arrived) > admitted+undecided {
				for _, begins := range arrived[:min(len(arrived), 12)] {
					t.Logf("%.150q", begins)
				}
				t.Errorf("%d arrived, and quotad admitted %d and had no time for %d", len(arrived), admitted,
					undecided)
			}
			if decided < oddRequests/20 || codes["429"] == 0 {
				t.Errorf("quotad decided %d: the requests are too odd to show anything", decided)
			}
		})
	}
}

// sendOdd sends requests over several connections at a time, and counts the answers by their codes.
func (s *stage) sendOdd(g *oddities) (codes map[string]int, longest time.Duration) {
	requests := make(chan oddRequest)
	var senders sync.WaitGroup
	var mu sync.Mutex
	codes = map[string]int{}
	for range oddSenders {
		senders.Go(func() {
			for r := range requests {
				began := time.Now()
				code := s.send("127.0.0.10", r.Bytes, r.Open)
				mu.Lock()
				codes[code]++
				longest = max(longest, time.Since(began))
				mu.Unlock()
			}
		})
	}
	for range oddRequests {
		requests <- g.next()
	}
	close(requests)
	senders.Wait()
	return codes, longest
}

// send sends bytes to the proxy, and returns the code of the first answer. open: it ends its side.
func (s *stage) send(from string, request []byte, open bool) (code string) {
	dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: answerTimeout}
	c, err := dialer.Dial("tcp", s.address)
	if err != nil {
		return "not connected"
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(oddPatience))
	if _, err := c.Write(request); err == nil && open {
		_ = c.(*net.TCPConn).CloseWrite()
	}
	in := bufio.NewReader(c)
	line, _ := in.ReadBytes('\n')
	_, _ = io.Copy(io.Discard, in)
	if fields := bytes.Fields(line); len(fields) > 1 && bytes.HasPrefix(line, []byte("HTTP/")) {
		return string(fields[1])
	}
	return "none"
}

var (
	decisionLine  = regexp.MustCompile(`(?m)^quotad_decisions_total\{.*reason="(\w+)".*\} (\S+)$`)
	undecidedLine = regexp.MustCompile(`(?m)^quotad_(queue_refused|calls_shed)_total\{.*\} (\S+)$`)
)

// counted sums up lines of the node's metrics, by what they are about and in all.
func (s *stage) counted(t *testing.T, line *regexp.Regexp) (by map[string]int, all int) {
	t.Helper()
	got, err := http.Get("http://" + s.node.Admin + "/metrics")
	suite.Must(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	suite.Must(t, err)
	by = map[string]int{}
	for _, m := range line.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		suite.Must(t, err)
		by[string(m[1])] += int(n)
		all += int(n)
	}
	return by, all
}

// admitted returns how many requests the node admitted.
func (s *stage) admitted(t *testing.T) int {
	t.Helper()
	by, _ := s.counted(t, decisionLine)
	return by["within_limit"] + by["store_failure_local"] + by["store_failure_allowed"]
}

// decided returns how many requests the node admitted or denied.
func (s *stage) decided(t *testing.T) int {
	t.Helper()
	_, all := s.counted(t, decisionLine)
	return all
}

// undecided returns how many requests the node answered that it had no time for.
func (s *stage) undecided(t *testing.T) int {
	t.Helper()
	_, all := s.counted(t, undecidedLine)
	return all
}
