package operators

import (
	"context"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
)

// Cutter cuts a node off from the nodes of another region, for rehearsals of faults. Safe for
// concurrent use.
type Cutter interface {
	// Cut loses what goes to the nodes of a region ("out"), comes from them ("in"), or "both", for
	// d. It replaces an earlier cut in the same direction. A d of 0 heals. Cut returns the
	// addresses of the nodes. An *invalid.Field says that there are none to cut.
	Cut(region, direction string, d time.Duration) ([]netip.Addr, error)
	// PacketsLost returns how many packets cuts have lost since the node started.
	PacketsLost() uint64
}

// maxCut bounds the time of a cut, so that a forgotten cut ends.
const maxCut = 10 * time.Minute

const noCuts = "this node makes no cuts; for a rehearsal of faults start it with chaos: true in the node file, or --chaos"

// cut cuts the node off from the nodes of another region for a while, or heals a cut.
func (s *Server) cut(w http.ResponseWriter, r *http.Request) {
	if s.options.Cutter == nil {
		wire.WriteProblem(w, wire.NewProblem(http.StatusForbidden, noCuts))
		return
	}
	wire.Answer(w, r, decodeCut, func(ctx context.Context, q cutting) (any, error) {
		cut, err := s.options.Cutter.Cut(q.region, q.direction, q.d)
		e := audit.Event{Act: audit.Cut, Region: q.region, Detail: q.direction + " for " + q.d.String()}
		if q.d == 0 {
			e.Act, e.Detail = audit.Heal, q.direction
		}
		s.options.Done(ctx, e, err)
		return cutAnswer{q.region, q.direction, asjson.Milliseconds(q.d), append([]netip.Addr{}, cut...),
			s.options.Cutter.PacketsLost()}, err
	})
}

// cutAnswer is the outcome of a cut as JSON.
type cutAnswer struct {
	Region    string              `json:"region"`
	Direction string              `json:"direction"`
	For       asjson.Milliseconds `json:"for_ms"` // 0: healed
	Addresses []netip.Addr        `json:"addresses"`
	// PacketsLost is by all cuts since the node started.
	PacketsLost uint64 `json:"packets_lost"`
}

var (
	cutFields     = []string{"region", "for", "direction", "heal"}
	cutDirections = []string{"both", "in", "out"}
)

// cutting is the request of a cut. A time of 0 heals.
type cutting struct {
	region, direction string
	d                 time.Duration
}

// decodeCut reads the JSON of a cut. Every error is an *invalid.Field.
func decodeCut(body []byte) (q cutting, err error) {
	q.direction = cutDirections[0]
	var length string
	var heal bool
	err = wire.Decode(body, cutFields, func(d *wire.Decoder, name string) (err error) {
		switch name {
		case "region":
			q.region, err = d.Text(name)
		case "for":
			length, err = d.Text(name)
		case "direction":
			q.direction, err = d.Text(name)
		case "heal":
			heal, err = d.Truth(name)
		}
		return err
	})
	switch {
	case err != nil:
		return cutting{}, err
	case q.region == "":
		return cutting{}, invalid.Fieldf("region", "is missing; name the region to cut off")
	case !slices.Contains(cutDirections, q.direction):
		return cutting{}, invalid.Fieldf("direction", "is %s; give %s", wire.Quote(q.direction),
			strings.Join(cutDirections, ", "))
	case heal && length != "":
		return cutting{}, invalid.Fieldf("for", "means nothing to a heal; leave it or heal out")
	case heal:
		return q, nil
	}
	q.d, err = time.ParseDuration(length)
	if err != nil || q.d <= 0 || q.d > maxCut {
		return cutting{}, invalid.Fieldf("for",
			"is %s; give how long to cut, above 0 and at most 10m, such as 5s", wire.Quote(length))
	}
	return q, nil
}
