package peer

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
)

// TestNoNode: a region of which no node is known, or none any more, cannot be called.
func TestNoNode(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us", named("us"))
		refused := func(when string) {
			t.Helper()
			_, err := p.client.Exchange(t.Context(), "us", exchange.Message{})
			if !errors.Is(err, ErrNoNode) || !strings.Contains(err.Error(), "region us") {
				t.Errorf("%s: %v, want %v", when, err, ErrNoNode)
			}
		}
		refused("at first")
		p.client.SetNodes("ap", []string{at("us")})
		refused("with another region's node")
		p.client.SetNodes("us", []string{at("us")})
		p.mustCall("us")
		p.client.SetNodes("us", nil)
		refused("after the last node left")
	})
}

// TestSetNodes: nodes that stay keep their order, whatever order they are named in; new ones follow
// behind.
func TestSetNodes(t *testing.T) {
	for _, c := range []struct{ known, given, want string }{
		{"", "", ""},
		{"", "a b", "a b"},
		{"", "a a b a", "a b"},
		{"a b c", "c b a", "a b c"},
		{"a b c", "c a", "a c"},
		{"a b c", "d b e", "b d e"},
		{"a b c", "d e", "d e"},
		{"a b c", "", ""},
	} {
		client := NewClient(nil, nil)
		client.SetNodes("us", strings.Fields(c.known))
		client.SetNodes("ap", []string{"z"})
		client.SetNodes("us", strings.Fields(c.given))
		if got := client.nodes["us"]; !slices.Equal(got, strings.Fields(c.want)) {
			t.Errorf("%q and then %q are %q, want %q", c.known, c.given, got, c.want)
		}
		if got := client.nodes["ap"]; !slices.Equal(got, []string{"z"}) {
			t.Errorf("another region's nodes became %q", got)
		}
	}
}

// TestSetNodesKeepsTheCallersSlice: the client neither keeps nor changes the list it is given.
func TestSetNodesKeepsTheCallersSlice(t *testing.T) {
	client, given := NewClient(nil, nil), []string{"a", "b", "c"}
	client.SetNodes("us", given)
	client.failed("us", "a")
	if !slices.Equal(given, []string{"a", "b", "c"}) {
		t.Errorf("the caller's list became %q", given)
	}
	given[0] = "x"
	if got := client.nodes["us"]; !slices.Equal(got, []string{"b", "c", "a"}) {
		t.Errorf("nodes are %q", got)
	}
}

// TestFailed: only the node at the front moves to the end, so calls that fail together move it
// once.
func TestFailed(t *testing.T) {
	client := NewClient(nil, nil)
	client.SetNodes("us", []string{"a", "b", "c"})
	for i, c := range []struct{ address, want string }{{"a", "b c a"}, {"a", "b c a"},
		{"c", "b c a"}, {"b", "c a b"}, {"x", "c a b"}} {
		if client.failed("us", c.address); !slices.Equal(client.nodes["us"],
			strings.Fields(c.want)) {
			t.Errorf("step %d: %q after %s failed, want %q", i, client.nodes["us"], c.address,
				c.want)
		}
	}
	client.failed("ap", "a")
	if n := len(client.nodes["ap"]); n != 0 {
		t.Errorf("a region nobody named has %d nodes", n)
	}
}

// TestFailedNodeRotates: a node that does not answer costs one call; the next ones go to its
// neighbour and stay there.
func TestFailedNodeRotates(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		dead, alive := p.net.Host("us-1"), at("us-2")
		p.serve("us-2", named("us-2"))
		both := []string{at(dead.Name()), alive}
		p.client.SetNodes("us", both)
		if who, err := p.call(time.Second); err == nil || !strings.Contains(err.Error(), both[0]) {
			t.Fatalf("the first call: %q, %v; want an error that names %s", who, err, both[0])
		}
		p.mustCall("us-2")
		p.client.SetNodes("us", both) // gossip names them again, in its own order
		p.mustCall("us-2")
	})
}

// TestNodesComeAndGo: a removed node is not called again, and calls under way to it end.
func TestNodesComeAndGo(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		for i := range 3 {
			host := fmt.Sprintf("us-%d", i)
			p.serve(host, named(host))
		}
		p.client.SetNodes("us", []string{at("us-0"), at("us-1")})
		p.mustCall("us-0")
		p.client.SetNodes("us", []string{at("us-2"), at("us-1")})
		p.mustCall("us-1")
		p.client.SetNodes("us", []string{at("us-2"), at("us-0")})
		p.mustCall("us-2")
		if n := len(p.client.conns); n != 1 {
			t.Errorf("%d connections are kept, want that to us-2 alone", n)
		}
		p.net.Isolate("us-2", time.Hour)
		ended := make(chan error, 1)
		go func() {
			_, err := p.call(time.Hour)
			ended <- err
		}()
		time.Sleep(time.Second)
		p.client.SetNodes("us", []string{at("us-0")})
		begin := time.Now()
		if err := <-ended; err == nil || time.Since(begin) > time.Second {
			t.Errorf("a call to a removed node: %v after %v", err, time.Since(begin))
		}
		p.mustCall("us-0")
	})
}
