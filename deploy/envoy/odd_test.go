//go:build envoy

package envoy

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/process"
)

// oddRequests is how many are made up.
const oddRequests = 10_000

// TestOddRequests: of made-up requests none passes undecided while quotad answers.
func TestOddRequests(t *testing.T) {
	node := startNodes(t, "limits.yaml", 1).Nodes[0]
	p := startEnvoy(t, "envoy.yaml", startApp(t), []string{node.GRPC})
	answers := sendOdd(t, p)
	c := p.counters(t)
	fmt.Printf("%d odd requests: %v, %d reached the app, decided %d and %d, bound %d, undecided %d\n",
		oddRequests, answers, p.app.count(""), c[decidedOK], c[decidedOver], c[boundDenied], c[undecided])
	if c[undecided] != 0 || c[decidedOK] < p.app.count("") || answers[http.StatusOK] < oddRequests/10 ||
		answers[http.StatusBadRequest] < oddRequests/10 {
		t.Errorf("%d of them passed undecided", c[undecided])
	}
}

// sendOdd sends made-up requests from 20 addresses, and returns how many had which answer; 0: none.
func sendOdd(t *testing.T, p *proxy) map[int]int {
	t.Helper()
	answers := map[int]int{}
	var mu sync.Mutex
	var work sync.WaitGroup
	for i := range 10 {
		r := rand.New(rand.NewPCG(44, uint64(i)))
		work.Go(func() {
			for range oddRequests / 10 {
				code := sendOnce(p.address, net.IPv4(127, 0, 4, byte(1+r.IntN(20))), oddRequest(r))
				mu.Lock()
				answers[code]++
				mu.Unlock()
			}
		})
	}
	work.Wait()
	return answers
}

// sendOnce sends a request on a connection of its own. 0: it has no answer.
func sendOnce(address string, from net.IP, request string) int {
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}).Dial("tcp", address)
	if err != nil {
		return 0
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(suite.Patience))
	if _, err := conn.Write([]byte(request)); err != nil {
		return 0
	}
	code, _, err := readAnswer(bufio.NewReader(conn))
	if err != nil {
		return 0
	}
	return code
}

// oddRequest makes a request up that is nearly an ordinary one.
func oddRequest(r *rand.Rand) string {
	odd := func(s string) string {
		b := []byte(s)
		for range r.IntN(3) {
			at := r.IntN(len(b) + 1)
			piece := []string{string([]byte{byte(r.IntN(256))}), "%2f", "%00", "..", "//", "%", "\u00e9", ",", ";"}[r.IntN(9)]
			b = append(b[:at:at], append([]byte(piece), b[at:]...)...)
		}
		return strings.ReplaceAll(string(b), "\n", " ")
	}
	pick := func(all ...string) string { return all[r.IntN(len(all))] }
	header := ""
	for range r.IntN(4) {
		header += pick("X-Api-Key", "Host", "Cookie", "X-Forwarded-For", "X-Tenant", "Authorization", "Expect") + ": " +
			odd(pick("key-of-acme", "key-of-globex", "192.0.2.7", strings.Repeat("x", r.IntN(9000)))) + "\r\n"
	}
	return pick("GET", "POST", "post", "OPTIONS", "X") + " " + odd(pick("/login", "/", "/a?b=c", "http://app/login")) +
		" HTTP/1.1\r\n" + "Host: " + odd("app") + "\r\n" + header + "Connection: close\r\nContent-Length: 0\r\n\r\n"
}

// TestValuesThatAreNotText: a descriptor can hold what a client writes in a header. Whatever it is,
// its limit holds.
func TestValuesThatAreNotText(t *testing.T) {
	limits, err := os.ReadFile("limits.yaml")
	suite.Must(t, err)
	fleet, err := process.Start(t.Context(), t, process.Config{Quotad: quotad(t), Limits: string(limits) + `
  - {name: tenant, domain: web, entries: [{key: tenant}], algorithm: fixed_window, limit: 2, window: 1h}
`, Regions: []process.RegionConfig{{Name: "here"}}, Settings: []string{"headers: {envoy: ietf}"}})
	suite.Must(t, err)
	p := startEnvoy(t, "envoy.yaml", startApp(t), []string{fleet.Regions[0].Nodes[0].GRPC},
		edit{"# change: who your clients are. Here an API key says so.",
			"- actions: [{request_headers: {header_name: X-Tenant, descriptor_key: tenant}}]"})
	values := []string{"a", "a\xff", "a\xc3\xa9", strings.Repeat("x", 8000), "a\x80b", "\xff", "\xed\xa0\x80"}
	for _, value := range values {
		denied := 0
		for range 5 {
			// The window may end once.
			if sendOnce(p.address, net.IPv4(127, 0, 5, 1), "GET /tenant HTTP/1.1\r\nHost: app\r\nX-Tenant: "+value+
				"\r\nConnection: close\r\n\r\n") == http.StatusTooManyRequests {
				denied++
			}
		}
		if denied == 0 {
			t.Errorf("%.30q has no limit", value)
		}
	}
	if c := p.counters(t); c[undecided] != 0 || c[decidedOK]+c[decidedOver] != 5*len(values) {
		t.Errorf("decided %d and %d, undecided %d", c[decidedOK], c[decidedOver], c[undecided])
	}
}
