package gossip

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/suite"
)

func peerAt(i int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}), 7946)
}

func TestBookKeepsOneEntryPerPeer(t *testing.T) {
	now := time.Unix(1000, 0)
	b := newBook()
	b.recall(peerAt(1))
	b.note("a", peerAt(1), now)
	b.note("b", peerAt(2), now)
	b.note("a", peerAt(3), now) // moved
	b.recall(peerAt(2))         // known already
	if got, want := b.addrs(), []string{"10.0.0.2:7946", "10.0.0.3:7946"}; !slices.Equal(got,
		want) {
		t.Errorf("holds %v, want %v", got, want)
	}
	b.forget("b")
	if got, want := b.addrs(), []string{"10.0.0.3:7946"}; !slices.Equal(got, want) {
		t.Errorf("holds %v, want %v", got, want)
	}
}

func TestBookForgetsThoseNotSeenForLongest(t *testing.T) {
	b := newBook()
	for i := range maxRemembered + 10 {
		b.note(fmt.Sprint(i), peerAt(i), time.Unix(int64(i), 0))
	}
	if len(b.entries) != maxRemembered || b.entries[peerAt(9)] != nil ||
		b.entries[peerAt(10)] == nil {
		t.Errorf("holds %d peers, want the %d seen last", len(b.entries), maxRemembered)
	}
}

// TestBookCallsTheLatestAlwaysAndAllInTurn: every round calls the peers seen last. No peer waits
// for more rounds than it takes to call all. Live peers are not called.
func TestBookCallsTheLatestAlwaysAndAllInTurn(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, maxRemembered).Draw(t, "peers")
		b, alive := newBook(), make(map[netip.AddrPort]bool)
		for i := range n {
			b.note(fmt.Sprint(i), peerAt(i), time.Unix(int64(rapid.IntRange(0, 50).Draw(t, "seen")),
				0))
			alive[peerAt(i)] = rapid.Bool().Draw(t, "alive")
		}
		var missing int
		var latest time.Time
		for addr, e := range b.entries {
			if !alive[addr] {
				missing++
				if e.seen.After(latest) {
					latest = e.seen
				}
			}
		}
		called := make(map[netip.AddrPort]bool)
		const inTurn = callsPerRound / 2
		for round := range 1 + missing/inTurn {
			calls := b.missing(alive, time.Unix(int64(round+1), 0))
			if len(calls) != min(missing, callsPerRound) {
				t.Fatalf("%d calls with %d missing", len(calls), missing)
			}
			sawLatest := false
			for _, addr := range calls {
				called[addr] = true
				sawLatest = sawLatest || b.entries[addr].seen.Equal(latest)
				if alive[addr] {
					t.Fatalf("calls %v, which is alive", addr)
				}
			}
			if missing > 0 && !sawLatest {
				t.Fatal("a round without the peer seen last")
			}
		}
		if len(called) != missing {
			t.Fatalf("called %d of %d", len(called), missing)
		}
	})
}

// TestBookKeepsWhoAnswered: peers that answered stay, then those of an earlier run, whatever is
// invented since. A node that only claims an address does not replace the one that answers there.
func TestBookKeepsWhoAnswered(t *testing.T) {
	b, now := newBook(), time.Unix(1000, 0)
	b.note("true", peerAt(1), now)
	b.answered(peerAt(1), now)
	b.recall(peerAt(2))
	for i := range 2 * maxRemembered {
		b.note(fmt.Sprint("invented", i), peerAt(100+i), now.Add(time.Hour))
	}
	if b.entries[peerAt(1)] == nil || b.entries[peerAt(2)] == nil ||
		len(b.entries) != maxRemembered {
		t.Errorf("%d entries: of who answered %v, of an earlier run %v", len(b.entries),
			b.entries[peerAt(1)], b.entries[peerAt(2)])
	}
	if calls := b.missing(nil, now); !slices.Contains(calls, peerAt(1)) ||
		!slices.Contains(calls, peerAt(2)) {
		t.Errorf("calls %v", calls)
	}
	b.note("claims", peerAt(1), now.Add(time.Hour))
	b.forget("claims")
	if e := b.entries[peerAt(1)]; e == nil || e.name != "true" {
		t.Errorf("who answered became %+v", e)
	}
}
