package operators

import (
	"context"
	"net/http"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/wire"
)

// Rehearsal makes load, and kills stores, for whoever tries quotad out. Safe for concurrent use.
type Rehearsal interface {
	// Load has a region get so many requests a second from now on, in place of those before; 0:
	// none. An *invalid.Field says what is wrong with the region.
	Load(region string, perSecond int) error
	// KillStore ends a region's store, with its data, and starts an empty one after d.
	KillStore(region string, d time.Duration) error
	// Loads returns the requests a second that each region gets.
	Loads() map[string]int
}

const (
	// maxLoad bounds the requests a second that a region gets.
	maxLoad = 1000
	// maxStoreGone bounds how long a store is gone.
	maxStoreGone = time.Minute
)

const noRehearsal = "this node neither makes load nor kills its store; quotad dev does"

// rehearse makes load in a region, or kills its store.
func (s *Server) rehearse(w http.ResponseWriter, r *http.Request) {
	if s.options.Rehearsal == nil {
		wire.WriteProblem(w, wire.NewProblem(http.StatusForbidden, noRehearsal))
		return
	}
	wire.Answer(w, r, decodeRehearsal, func(_ context.Context, q rehearsing) (any, error) {
		var err error
		if q.gone > 0 {
			err = s.options.Rehearsal.KillStore(q.region, q.gone)
		} else {
			err = s.options.Rehearsal.Load(q.region, q.load)
		}
		return rehearsalAnswer{s.options.Rehearsal.Loads()}, err
	})
}

// rehearsalAnswer is the outcome as JSON.
type rehearsalAnswer struct {
	Loads map[string]int `json:"loads"` // requests a second, by region
}

var rehearsalFields = []string{"region", "load", "kill_store"}

// rehearsing is what is asked for: a load, or that the store is gone for a while.
type rehearsing struct {
	region string
	load   int
	gone   time.Duration
}

// decodeRehearsal reads the JSON. Every error is an *invalid.Field.
func decodeRehearsal(body []byte) (q rehearsing, err error) {
	var gone string
	loads := false
	err = wire.Decode(body, rehearsalFields, func(d *wire.Decoder, name string) (err error) {
		switch name {
		case "region":
			q.region, err = d.Text(name)
		case "load":
			var n quantity.Units
			n, err = d.Units(name)
			q.load, loads = int(min(n, maxLoad+1)), true
		case "kill_store":
			gone, err = d.Text(name)
		}
		return err
	})
	switch {
	case err != nil:
		return rehearsing{}, err
	case q.region == "":
		return rehearsing{}, invalid.Fieldf("region", "is missing; name a region")
	case loads == (gone != ""):
		return rehearsing{}, invalid.Fieldf("load", "and kill_store: give one of them")
	case q.load < 0 || q.load > maxLoad:
		return rehearsing{}, invalid.Fieldf("load", "must be a whole number from 0 to %d", maxLoad)
	case loads:
		return q, nil
	}
	q.gone, err = time.ParseDuration(gone)
	if err != nil || q.gone <= 0 || q.gone > maxStoreGone {
		return rehearsing{}, invalid.Fieldf("kill_store",
			"is %s; give how long the store is gone, above 0 and at most 1m, such as 5s", wire.Quote(gone))
	}
	return q, nil
}
