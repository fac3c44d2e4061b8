package gossip

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// byRegion puts members into groups by what stands before a slash, of which there are two.
func byRegion(m Member) (string, error) {
	group, node, ok := strings.Cut(m.Name, "/")
	if !ok || node == "" || group != "us" && group != "eu" {
		return "", errors.New("it is of no region")
	}
	return group, nil
}

// invent sends packets that say that a node is alive.
func invent(t *testing.T, from net.PacketConn, to *node, name string, at [4]byte,
	incarnation uint32) {
	t.Helper()
	b := append([]byte{frameAlive}, record(field{"Incarnation", num(incarnation)},
		field{"Node", blob([]byte(name))},
		field{"Addr", blob(at[:])}, field{"Port", num(7946)},
		field{"Meta", blob([]byte("meta of " + name))},
		field{"Vsn", blob([]byte{1, 5, 2, dialect, dialect, dialect})})...)
	if _, err := from.WriteTo(b, net.UDPAddrFromAddrPort(to.cfg.Advertise)); err != nil {
		t.Fatal(err)
	}
}

// enemyOf is where packets come from that no node sent.
func enemyOf(t *testing.T, network *network.Network) net.PacketConn {
	t.Helper()
	packets, err := network.Host("enemy").ListenPacket(0)
	suite.Must(t, err)
	return packets
}

// TestInventedMembersDoNotMatter: there are 1,285 invented members, and 700 of no region. The true
// nodes stay, find each other after a pause, and are remembered. When they come back, they are
// admitted, because they have answered before.
func TestInventedMembersDoNotMatter(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		network := newNetwork(t)
		const most = 16
		join := func(c *Config) {
			c.Name, c.Admit, c.MaxGroup = "us/"+c.Name, byRegion, most
			if c.Name == "us/c" {
				c.Name = "eu/c"
			}
		}
		var nodes []*node
		for _, name := range []string{"a", "b", "c"} {
			nodes = append(nodes, start(t, network, name, func(c *Config) {
				seeds(network, "a")(c)
				join(c)
			}))
		}
		names := []string{"us/a", "us/b", "eu/c"}
		within(t, 15*time.Second, "the cluster to form",
			func() error { return sameView(nodes, names...) })
		time.Sleep(15 * time.Second) // all have been probed
		a, packets := nodes[0], enemyOf(t, network)
		for i := range 1285 {
			invent(t, packets, a, fmt.Sprintf("us/invented-%d", i),
				[4]byte{10, 9, byte(i >> 8), byte(i)}, 1)
			if i%20 == 0 {
				time.Sleep(10 * time.Millisecond)
			}
		}
		for i := range 700 {
			invent(t, packets, a, fmt.Sprintf("\x1b[31mevil%d/n", i),
				[4]byte{10, 8, byte(i >> 8), byte(i)}, 1)
		}
		time.Sleep(time.Second)
		for _, n := range nodes {
			if members := len(n.Members()); members > most+2 {
				t.Errorf("%s sees %d members", n.cfg.Name, members)
			}
		}
		if refused := a.Stats().MembersRefused; refused < 1285+700-2*most {
			t.Errorf("%d were refused", refused)
		}
		if a.log.has("\x1b") {
			t.Error("a name wrote escape codes to the log")
		}
		network.Isolate("b", 12*time.Second) // longer than it takes to be missed
		within(t, time.Minute, "b to come back", func() error {
			for _, want := range names {
				if !strings.Contains(strings.Join(a.names(), " "), want) {
					return fmt.Errorf("%s is missing of %v", want, a.names())
				}
			}
			return nil
		})
		remembered := strings.Join(a.Remembered(), " ")
		for _, n := range nodes[1:] {
			if !strings.Contains(remembered, n.cfg.Advertise.String()) {
				t.Errorf("%s is not remembered", n.cfg.Name)
			}
		}
		within(t, 5*time.Minute, "the invented to be gone",
			func() error { return sameView(nodes, names...) })
	})
}

// TestNewNamesAreBoundedInTime: a host invents members and buries them at once. It gets no more
// than one new name a second admitted.
func TestNewNamesAreBoundedInTime(t *testing.T) {
	const most = 16
	a := newAdmission(Config{Admit: byRegion, MaxGroup: most})
	now, admitted := time.Unix(1000, 0), 0
	for i := range 5000 {
		m := Member{Name: fmt.Sprint("us/", i)}
		if a.check(m, false, now) == nil {
			a.joined(m)
			a.left(m.Name)
			admitted++
		}
		now = now.Add(10 * time.Millisecond)
	}
	if admitted != most+50 && admitted != most+49 {
		t.Errorf("%d names were admitted in 50 s, want %d and one a second", admitted, most)
	}
	if err := a.check(Member{Name: "eu/n1"}, false, now); err != nil {
		t.Errorf("another region's node is refused: %v", err)
	}
	if len(a.groupOf)+len(a.count) != 0 {
		t.Errorf("%v and %v are kept of members that are gone", a.groupOf, a.count)
	}
}

// TestWhoAnsweredComesFirst: a member that answered is admitted to a full group, for ten minutes
// only. As many such members are remembered as a group may have.
func TestWhoAnsweredComesFirst(t *testing.T) {
	const most = 4
	a, now := newAdmission(Config{Admit: byRegion, MaxGroup: most}), time.Unix(1000, 0)
	join := func(name string) {
		m := Member{Name: name}
		a.joined(m)
	}
	join("us/true")
	a.heard("us/true", now)
	a.left("us/true")
	for i := range most {
		join(fmt.Sprint("us/", i))
	}
	if err := a.check(Member{Name: "us/new"}, false, now); !errors.Is(err, errGroupFull) {
		t.Errorf("a new one: %v", err)
	}
	if err := a.check(Member{Name: "us/true"}, false, now.Add(answerCounts-1)); err != nil {
		t.Errorf("one that answered: %v", err)
	}
	if err := a.check(Member{Name: "us/true"}, false, now.Add(answerCounts)); !errors.Is(err,
		errGroupFull) {
		t.Errorf("one that answered long ago: %v", err)
	}
	for i := range most {
		a.heard(fmt.Sprint("us/", i), now.Add(time.Second))
	}
	if n := len(a.answered["us"]); n != most || !a.answered["us"]["us/true"].IsZero() {
		t.Errorf("%d are remembered: %v", n, a.answered["us"])
	}
	if a.check(Member{Name: "us/0"}, true, now) != nil || a.check(Member{Name: "nonsense"}, true,
		now) == nil {
		t.Error("a member may say anew who it is, but not become nonsense")
	}
}
