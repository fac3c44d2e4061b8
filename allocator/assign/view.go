package assign

import "github.com/quotad/quotad/quantity"

// Stats counts what a machine has done.
type Stats struct {
	Assigned int64 // new and changed assignments
	Renewed  int64 // assignments sent once more
	Expired  int64 // assignments that ended and were not replaced
	// Unpaid is how often an assignment was not sent because the purse had not one token.
	Unpaid  int64
	Plans   int64 // times that a bucket was planned
	Streams int64
	Shares  int64 // pairs of a stream and a bucket id
	Buckets int64
	Silent  int64 // streams that missed two reports
}

// Stats returns what the machine has done so far.
func (m *Machine) Stats(now quantity.NodeTime) Stats {
	s := m.stats
	s.Streams, s.Shares, s.Buckets = int64(len(m.streams)), int64(m.shares), int64(len(m.pools))
	for _, of := range m.streams {
		for _, one := range of {
			if one.silent(now) {
				s.Silent++
			}
			break // a stream's shares are heard of together
		}
	}
	return s
}

// Shares returns how many pairs of a stream and a bucket id the machine has, of MaxShares.
func (m *Machine) Shares() int { return m.shares }

// Holding is what one Envoy has of a bucket.
type Holding struct {
	Stream Stream
	Key    string
	// Demand is in thousandths of a token a second; negative: not known yet.
	Demand int64
	Rate   int64 // tokens a second; 0: it has no assignment
	Burst  quantity.Units
	Left   int64 // microseconds until it may end at the Envoy
	Silent bool  // reports are missing
	Gone   bool  // the stream is over, and the Envoy may go on
}

// View is what the node holds of a bucket, and who has it.
type View struct {
	Held, Next quantity.Units // rights of this cell and the next
	Purse      quantity.Units // tokens paid for
	Wanted     int64          // tokens a second that all Envoys want together
	Holdings   []Holding
}

// View returns what the node holds of a bucket, and at most so many of those who have it.
func (m *Machine) View(now quantity.NodeTime, bucket string, most int) (v View, known bool) {
	p := m.pools[bucket]
	if p == nil {
		return View{}, false
	}
	v = View{Purse: p.purse.tokens, Wanted: p.wanted}
	for i := range p.cells {
		switch i {
		case 0:
			v.Held = p.cells[i].own()
		case 1:
			v.Next = p.cells[i].own()
		}
	}
	for _, s := range p.shares {
		if len(v.Holdings) == most {
			break
		}
		h := Holding{Stream: s.stream, Key: s.key, Demand: -1, Silent: s.silent(now), Gone: s.gone}
		if s.measured {
			h.Demand = s.demand
		}
		if n := len(s.grants); n > 0 {
			g := s.grants[n-1]
			h.Rate, h.Burst, h.Left = g.rate, g.burst, max(g.ends.Sub(now), 0)
		}
		v.Holdings = append(v.Holdings, h)
	}
	return v, true
}
