package fronts

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/cluster"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/store"
)

// Real is a node with its store. Its region is the only one.
type Real struct {
	*region.Node
	Store  *store.Store
	Policy *policy.Document
}

// Start runs a node on a Redis until the end of the test. limits are those of a document.
func Start(t testing.TB, server *servers.Server, limits string) *Real {
	t.Helper()
	d, err := policy.Parse("limits.yaml", []byte("version: 1\nregions:\n  here: {weight: 1}\nlimits:\n"+limits))
	suite.Must(t, err)
	s, err := store.Connect(store.Options{URL: server.URL, Timeout: suite.Patience})
	suite.Must(t, err)
	alone := cluster.New(t.TempDir(), "here")
	c, err := alone.Config("here", s, d)
	suite.Must(t, err)
	n, err := cluster.Start(t.Context(), c)
	suite.Must(t, err)
	t.Cleanup(func() { suite.Must(t, n.Close(), alone.Network.Close()) })
	return &Real{n, s, d}
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
