package lab

import (
	"context"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/region/memory/store"
)

// Driven is a servers.Driven whose calls fail on demand. Neither it nor its stores are safe for
// concurrent use.
type Driven struct {
	*servers.Driven
	outage
}

// StartDriven starts a Driven at the time now, with a master_replid.
func StartDriven(now time.Time, replid string) (*Driven, error) {
	d, err := servers.StartDrivenBy(now, replid)
	return &Driven{Driven: d}, err
}

// longest is the deadline of calls. It is longer than any call takes, so that a busy machine cannot
// change what happens in a simulation. By the node's clock a call takes no time.
const longest = time.Hour

// Connect returns a store on the server for a node with the clock now. Outages of the server
// concern only the stores that were connected so.
func (d *Driven) Connect(now func() time.Time) (*store.Store, error) {
	p, err := store.Redis(store.Options{URL: d.URL(), Timeout: longest, Now: now})
	if err != nil {
		return nil, err
	}
	p.Servers, p.Deadline = failing{p.Servers, d}, store.DefaultTimeout
	return store.New(p), nil
}

// failing makes calls fail either before they are sent or after they were answered, so that it is
// certain whether they ran.
type failing struct {
	store.Servers
	of *Driven
}

// Exec implements store.Servers.
func (f failing) Exec(ctx context.Context, calls []store.Call) (replies []store.Reply) {
	runs, lost := f.of.trip()
	if runs {
		replies = f.Servers.Exec(ctx, calls)
	}
	if lost != nil {
		replies = make([]store.Reply, len(calls))
		for i, c := range calls {
			replies[i].Err = store.Failed(f.of.URL(), "script "+c.Op.Script().Name, lost)
		}
	}
	return replies
}

// Look implements store.Servers.
func (f failing) Look(ctx context.Context, shard store.Shard,
	nothing algorithms.Open) (found store.Found, err error) {
	runs, lost := f.of.trip()
	if runs {
		found, err = f.Servers.Look(ctx, shard, nothing)
	}
	if lost != nil {
		return store.Found{}, store.Failed(f.of.URL(), "open the store", lost)
	}
	return found, err
}

// Ping implements store.Servers.
func (f failing) Ping(ctx context.Context, shard store.Shard) (err error) {
	runs, lost := f.of.trip()
	if runs {
		err = f.Servers.Ping(ctx, shard)
	}
	if lost != nil {
		return store.Failed(f.of.URL(), "ping", lost)
	}
	return err
}
