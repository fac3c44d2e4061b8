package fronts

import (
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/store"
)

// Real is a node with its store. Its region is the only one.
type Real struct {
	*region.Node
	Server *servers.Server
	Store  *store.Store
	Policy *policy.Document
}

// Start runs a node on a Redis until the end of the test. limits are those of a document.
func Start(t testing.TB, server *servers.Server, limits string) *Real {
	t.Helper()
	n := &Real{Server: server}
	var err error
	if n.Policy, err = policy.Parse("limits.yaml",
		[]byte("version: 1\nregions:\n  here: {weight: 1}\nlimits:\n"+limits)); err != nil {
		t.Fatal(err)
	}
	c := region.Config{Region: "here", Node: "n1", Nodes: 1, Policy: n.Policy, Bootstrap: true,
		Exchange: exchange.Options{}, Log: Quiet()}
	if n.Store, err = store.Connect(store.Options{URL: server.URL,
		Timeout: suite.Patience}); err != nil {
		t.Fatal(err)
	}
	c.Store = n.Store
	if c.Journal, err = journal.Open(filepath.Join(t.TempDir(), "journal.db"),
		journal.Options{Region: "here", Node: "n1"}); err != nil {
		t.Fatal(err)
	}
	network := network.New()
	host := network.Host("here")
	var errs [3]error
	c.PeerListener, errs[0] = host.Listen(8082)
	c.Packets, errs[1] = host.ListenPacket(7946)
	c.Streams, errs[2] = host.Listen(7946)
	c.PeerAdvertise = netip.AddrPortFrom(host.IP(), 8082).String()
	c.Advertise = netip.AddrPortFrom(host.IP(), 7946)
	c.Dial = host.DialContext
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
	if n.Node, err = region.Start(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(n.Close(), network.Close(), server.Close()); err != nil {
			t.Error(err)
		}
	})
	return n
}

// RoomyWindow returns a window whose present cell, floor(t/W), lasts for another ten minutes.
func RoomyWindow() time.Duration {
	const room = 10 * time.Minute
	w := time.Hour
	for now := time.Now().UnixMicro(); now%w.Microseconds() > (w - room).Microseconds(); {
		w += time.Minute
	}
	return w
}

// AccountLimit is a fixed window of an account, as text of a document.
func AccountLimit(units int64, window time.Duration) string {
	return fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: %d, window: %dm, on_store_failure: deny}\n",
		units, int64(window/time.Minute))
}
