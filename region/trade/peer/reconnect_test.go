package peer

import (
	"bytes"
	"context"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
)

// soon is how long after a heal calls must work again: the longest wait between two dials, a dial,
// and a margin.
const soon = 2 * time.Second

// TestServerRestarts: a server that comes back at its address is called again soon, however long it
// was away.
func TestServerRestarts(t *testing.T) {
	for _, away := range []time.Duration{0, time.Second, time.Minute, time.Hour} {
		t.Run(away.String(), func(t *testing.T) {
			inPlace(t, func(t *testing.T, p *place) {
				server := p.serve("us", named("before"))
				p.client.SetNodes("us", []string{at("us")})
				p.mustCall("before")
				server.Close()
				p.fails(away)
				p.serve("us", named("after"))
				if took := p.recovers(); took > soon {
					t.Errorf("called again after %v, want at most %v", took, soon)
				}
				p.mustCall("after")
			})
		})
	}
}

// TestCutHeals: after a cut in one direction or both, calls work again soon. It does not matter
// whether the cut was shorter or longer than the time that a silent connection is given, or whether
// anybody called meanwhile.
func TestCutHeals(t *testing.T) {
	cuts := map[string]func(p *place, d time.Duration){
		"both":  func(p *place, d time.Duration) { p.net.CutBoth("eu", "us", d) },
		"there": func(p *place, d time.Duration) { p.net.Cut("eu", "us", d) },
		"back":  func(p *place, d time.Duration) { p.net.Cut("us", "eu", d) },
	}
	for name, cut := range cuts {
		for _, d := range []time.Duration{5 * time.Second, 14 * time.Second, time.Minute,
			61500 * time.Millisecond, 10 * time.Minute} {
			for _, calling := range []bool{true, false} {
				t.Run(name+" "+d.String()+map[bool]string{true: " calling",
					false: " idle"}[calling], func(t *testing.T) {
					inPlace(t, func(t *testing.T, p *place) {
						p.serve("us", named("us"))
						p.client.SetNodes("us", []string{at("us")})
						p.mustCall("us")
						healed := time.Now().Add(d)
						cut(p, d)
						if calling {
							p.fails(d)
						}
						time.Sleep(time.Until(healed))
						if took := p.recovers(); took > soon {
							t.Errorf("called again %v after the heal, want at most %v", took, soon)
						}
						p.mustCall("us")
					})
				})
			}
		}
	}
}

// fails pings for a time, at the rate of package exchange, and wants no answer.
func (p *place) fails(d time.Duration) {
	p.Helper()
	for end := time.Now().Add(d); time.Until(end) > 500*time.Millisecond; time.Sleep(250 *
		time.Millisecond) {
		if who, err := p.call(250 * time.Millisecond); err == nil {
			p.Fatalf("%q answers, %v before it can", who, time.Until(end))
		}
	}
}

// TestPartnersOnly: a cut towards one node of a region leaves the calls to go to another.
func TestPartnersOnly(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us-1", named("us-1"))
		p.serve("us-2", named("us-2"))
		p.client.SetNodes("us", []string{at("us-1"), at("us-2")})
		p.mustCall("us-1")
		p.net.CutBoth("eu", "us-1", time.Minute)
		if _, err := p.call(time.Second); err == nil {
			t.Fatal("an answer through a cut")
		}
		for range 100 {
			p.mustCall("us-2")
			time.Sleep(500 * time.Millisecond)
		}
	})
}

// teeing keeps what is written to a connection.
type teeing struct {
	net.Conn
	sent *bytes.Buffer
}

func (c teeing) Write(b []byte) (int, error) {
	c.sent.Write(b)
	return c.Conn.Write(b)
}

// TestNothingButCallsIsSent: a connection that is used carries no pings of gRPC's own.
func TestNothingButCallsIsSent(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		var sent bytes.Buffer
		c := NewClient(func(ctx context.Context, kind, address string) (net.Conn, error) {
			conn, err := p.net.Host("eu").DialContext(ctx, kind, address)
			return teeing{conn, &sent}, err
		}, nil)
		p.serve("us", named("us"))
		c.SetNodes("us", []string{at("us")})
		const calls = 20
		for range calls {
			if _, err := c.Exchange(t.Context(), "us", exchange.Message{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(500 * time.Millisecond)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		sent.Next(len(http2.ClientPreface))
		frames, seen := http2.NewFramer(nil, &sent), map[http2.FrameType]int{}
		for f, err := frames.ReadFrame(); err == nil; f, err = frames.ReadFrame() {
			seen[f.Header().Type]++
		}
		if seen[http2.FrameHeaders] != calls || seen[http2.FramePing] > 0 {
			t.Errorf("%d calls took frames %v", calls, seen)
		}
	})
}

// TestSilentConnectionIsGivenUp: some time into a cut the connection counts as lost, and calls fail
// before their deadline.
func TestSilentConnectionIsGivenUp(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us", named("us"))
		p.client.SetNodes("us", []string{at("us")})
		p.mustCall("us")
		p.net.CutBoth("eu", "us", time.Hour)
		// A probe, its missing answer, and a dial that is given up.
		time.Sleep(keepaliveTime + 2*keepaliveTimeout + time.Second)
		begin := time.Now()
		if _, err := p.call(time.Minute); status.Code(err) != codes.Unavailable {
			t.Errorf("the call: %v, want %v", err, codes.Unavailable)
		}
		if took := time.Since(begin); took > keepaliveTimeout+maxBackoff {
			t.Errorf("the call was held for %v", took)
		}
	})
}
