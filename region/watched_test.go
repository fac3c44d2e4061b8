package region_test

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/store"
)

// watched connects to a region's store and tells a test when requests are sent to be decided.
type watched struct {
	store.Servers
	decides func() // called before each round trip with decisions
}

// Exec implements store.Servers.
func (w *watched) Exec(ctx context.Context, calls []store.Call) []store.Reply {
	for _, c := range calls {
		if _, decides := c.Op.(*store.Op[algorithms.Items, algorithms.ItemsDecided]); decides {
			w.decides()
			break
		}
	}
	return w.Servers.Exec(ctx, calls)
}

// startWatched starts a node on a twin, and has decides called before each round trip in which the
// store decides requests.
func (c *cluster) startWatched(name string, d *policy.Document, decides func()) *running {
	c.t.Helper()
	return c.start(name, d, func(cfg *region.Config) {
		_ = cfg.Store.Close()
		_, way := c.onTwin(cfg.Region).Connect(time.Now)
		cfg.Store = store.New(store.Parts{Servers: &watched{way, decides},
			Address: store.AddressOf("in memory"),
			Timeout: time.Hour, Deadline: c.deadline, NewSecret: rand.Text})
	})
}
