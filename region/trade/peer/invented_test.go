package peer

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// invented returns addresses without a node. Packets to the first of them, as many as are ever
// kept, are lost, so that calls time out.
func (p *place) invented(n int) []string {
	all := make([]string, n)
	for i := range all {
		host := p.net.Host(fmt.Sprintf("invented-%d", i))
		if i < maxAddresses {
			p.net.Isolate(host.Name(), time.Hour)
		}
		all[i] = at(host.Name())
	}
	return all
}

// TestInventedAddressesDoNotMatter: there are 1,285 invented addresses beside one true node, which
// is silent for five seconds. The client finds it again within two calls, does not displace it, and
// bounds the list.
func TestInventedAddressesDoNotMatter(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us-1", named("us-1"))
		p.client.SetNodes("us", []string{at("us-1")})
		p.mustCall("us-1")
		invented := p.invented(1285)
		p.client.SetNodes("us", append(slices.Clone(invented), at("us-1")))
		if n := len(p.client.nodes["us"]); n != maxAddresses ||
			p.client.AddressesRefused() != 1286-maxAddresses {
			t.Errorf("%d addresses are kept, %d were refused", n, p.client.AddressesRefused())
		}
		p.mustCall("us-1")
		p.net.Isolate("us-1", 5*time.Second)
		for end := time.Now().Add(5 * time.Second); time.Now().Before(end); {
			if who, err := p.call(time.Second); err == nil {
				t.Fatalf("%s answered during the pause", who)
			}
		}
		if took := p.recovers(); took > 2*time.Second {
			t.Errorf("the true node was called again only after %v", took)
		}
		p.mustCall("us-1")
		p.client.SetNodes("us", invented)
		if slices.Contains(p.client.nodes["us"], at("us-1")) {
			t.Error("an address that nobody names is kept")
		}
	})
}

// TestLately: a node that answered is named for half a minute. A node that did not, or that is no
// longer kept, is not named.
func TestLately(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us-1", named("us-1"))
		p.client.SetNodes("us", []string{at("us-1"), at("us-2")})
		if got := p.client.Lately("us"); len(got) != 0 {
			t.Errorf("before any call: %q", got)
		}
		p.mustCall("us-1")
		for _, step := range []struct {
			after time.Duration
			want  []string
		}{{0, []string{at("us-1")}}, {answersCount - time.Millisecond, []string{at("us-1")}},
			{time.Millisecond, nil}} {
			time.Sleep(step.after)
			if got := p.client.Lately("us"); !slices.Equal(got, step.want) {
				t.Errorf("%v later: %q, want %q", step.after, got, step.want)
			}
		}
		p.mustCall("us-1")
		p.client.SetNodes("us", []string{at("us-2")})
		if got := p.client.Lately("us"); len(got) != 0 || len(p.client.answered) != 0 {
			t.Errorf("an address that is not kept: %q, %v", got, p.client.answered)
		}
	})
}

// TestFailedTakesTurns: nodes that answered before and nodes that never did take turns, whichever
// are more.
func TestFailedTakesTurns(t *testing.T) {
	client := NewClient(nil, nil)
	client.SetNodes("us", []string{"true", "also", "x", "y", "z"})
	client.succeeded("us", "true")
	client.succeeded("us", "also")
	var called []string
	for range 9 {
		first := client.nodes["us"][0]
		called = append(called, first)
		client.failed("us", first)
	}
	want := []string{"true", "also", "x", "true", "y", "also", "z", "true", "x"}
	if !slices.Equal(called, want) {
		t.Errorf("called %q, want %q", called, want)
	}
}
