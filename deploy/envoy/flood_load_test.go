//go:build envoy

package envoy

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// flood is a closed loop: each connection sends its next request when the last one is answered.
type flood struct {
	name, limit  string
	method, path string
	header       string // empty, or a line with its end
	connections  int
	addresses    int // of 127.0.1.0/24, in turn
}

// flooded is what the clients of a flood saw.
type flooded struct {
	answers     map[int]int // by status
	errors      int
	took        time.Duration
	p50, p99    time.Duration
	latencies   []time.Duration
	connections int // that were open at the end
}

func (f flooded) requests() (n int) {
	for _, count := range f.answers {
		n += count
	}
	return n
}

// run floods an address for a time.
func (f flood) run(t *testing.T, address string, d time.Duration) (all flooded) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	request := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: app\r\nContent-Length: 0\r\n%s\r\n", f.method, f.path, f.header)
	all.answers = map[int]int{}
	var mu sync.Mutex
	var work sync.WaitGroup
	begun := time.Now()
	for i := range f.connections {
		work.Go(func() {
			one := loop(ctx, address, net.IPv4(127, 0, 1, byte(1+i%f.addresses)), request)
			mu.Lock()
			defer mu.Unlock()
			all.add(one)
		})
	}
	work.Wait()
	all.took = time.Since(begun)
	slices.Sort(all.latencies)
	if n := len(all.latencies); n > 0 {
		all.p50, all.p99 = all.latencies[n/2], all.latencies[n*99/100]
	}
	return all
}

func (f *flooded) add(one flooded) {
	for code, n := range one.answers {
		f.answers[code] += n
	}
	f.errors += one.errors
	f.connections += one.connections
	f.latencies = append(f.latencies, one.latencies...)
}

// loop is one connection, which is opened again when it is closed.
func loop(ctx context.Context, address string, from net.IP, request string) (one flooded) {
	one.answers = map[int]int{}
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}}
	for ctx.Err() == nil {
		conn, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			if ctx.Err() == nil {
				one.errors++
			}
			continue
		}
		// The last requests are answered after the end.
		end, _ := ctx.Deadline()
		_ = conn.SetDeadline(end.Add(suite.Patience))
		in := bufio.NewReaderSize(conn, 2048)
		for ctx.Err() == nil {
			begun := time.Now()
			if _, err = conn.Write([]byte(request)); err != nil {
				break
			}
			code, closes, failed := readAnswer(in)
			if err = failed; err != nil {
				break
			}
			one.answers[code]++
			one.latencies = append(one.latencies, time.Since(begun))
			if closes {
				break
			}
		}
		_ = conn.Close()
		if err != nil {
			one.errors++
		}
	}
	return one
}

// readAnswer reads an answer with a Content-Length.
func readAnswer(in *bufio.Reader) (code int, closes bool, err error) {
	status, err := in.ReadSlice('\n')
	if err != nil {
		return 0, false, err
	}
	if len(status) < len("HTTP/1.1 200") {
		return 0, false, errors.New("no status")
	}
	if code, err = strconv.Atoi(string(status[9:12])); err != nil {
		return 0, false, err
	}
	length := 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return 0, false, err
		}
		name, value, found := strings.Cut(strings.TrimSpace(string(line)), ": ")
		switch {
		case !found && len(line) <= 2:
			_, err = in.Discard(length)
			return code, closes, err
		case name == "content-length":
			length, _ = strconv.Atoi(value)
		case name == "connection":
			closes = value == "close"
		}
	}
}
