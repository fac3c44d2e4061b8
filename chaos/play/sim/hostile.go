package sim

import (
	"fmt"
	"math/rand/v2"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/trade/peer"
)

// lie gossips untrue hints in the name of a region for a while.
func (w *world) lie(a Act) {
	random := w.plan.random(forActs, a.ID)
	w.found(a, rowLies)
	w.lied = true
	until := w.now + a.For
	var again func()
	again = func() {
		h := w.untrueHint(random, w.regions[a.Region], a)
		for _, r := range w.regions {
			for _, n := range r.nodes {
				n.hints(h)
			}
		}
		if w.now < until {
			w.in(random.Int64N(100_000)+1, again)
		}
	}
	again()
}

// untrueHint returns an encoded hint with amounts from the plausible to the impossible.
func (w *world) untrueHint(random *rand.Rand, r *region, a Act) []byte {
	b := w.limits[a.Limit%len(w.limits)].buckets[a.Key]
	amount := func() quantity.Units { return wild(random, b.limit.policy.Limit) }
	h := &hintv1.Hint{Region: r.name, Node: fmt.Sprintf("n%d", 1+random.IntN(3)),
		Bucket: []byte(b.id), Incarnation: random.Uint64(),
		Sequence: random.Uint64(), Cell: int64(b.cells().At(quantity.StoreTime(w.wall()))) + random.Int64N(3) - 1,
		Used: int64(amount()), RateMilli: int64(amount()), Share: int64(amount()),
		Spare: int64(amount()), Total: int64(amount()), SpareBurst: int64(amount())}
	// This lets true hints be believed again.
	if random.IntN(2) == 0 {
		h.Incarnation, h.Sequence = 0, 0
	}
	bytes, err := proto.Marshal(&hintv1.Hints{Hints: []*hintv1.Hint{h}})
	w.must(err)
	return bytes
}

// wild returns an amount up to twice the limit, zero, a negative one, or an impossibly large one.
func wild(random *rand.Rand, limit quantity.Units) quantity.Units {
	switch random.IntN(6) {
	case 0:
		return 0
	case 1:
		return quantity.Units(-random.Int64N(int64(limit + 1)))
	case 2:
		return quantity.Units(algorithms.MaxUnits + random.Int64N(3) - 1)
	case 3:
		return quantity.Units(1<<62 + random.Int64N(1<<61))
	}
	return quantity.Units(random.Int64N(int64(2*limit + 1)))
}

// forge sends a region messages in the name of another region, which none of its nodes sent. Only a
// region's own node that has gone wrong can do so, because certificates keep out all others. What
// the receiver lends because of them is lent to the named region, and lost to both.
func (w *world) forge(a Act) {
	random := w.plan.random(forActs, a.ID)
	from, to := w.regions[a.Region], w.regions[a.Peer]
	target := to.nodes[a.Node%len(to.nodes)]
	for range 1 + random.IntN(4) {
		b := w.limits[a.Limit%len(w.limits)].buckets[a.Key]
		m := exchange.Message{From: from.name, Node: "n1",
			Generation: random.Uint64() >> uint(random.IntN(64))}
		agreed := target.agreed(b.id)
		switch random.IntN(6) {
		case 0:
			agreed++
		case 1:
			m.From = "nowhere"
		}
		for range 1 + random.IntN(3) {
			limit := b.limit.policy.Limit
			m.Asks = append(m.Asks,
				exchange.Ask{Bucket: b.id, Agreed: agreed,
					Cell: b.cells().At(quantity.StoreTime(w.wall())) +
						quantity.Cell(random.Int64N(4)-1),
					Returned: wild(random, limit),
					Lent:     wild(random, limit), Burst: wild(random, limit)})
		}
		bytes, err := peer.MarshalMessage(m)
		w.must(err)
		w.found(a, rowLies)
		target.asks(bytes, func([]byte) {})
	}
}

// agreed returns the digest of the terms under which a node works on a bucket.
func (n *node) agreed(id string) uint64 {
	if n.live == nil {
		return 0
	}
	if b := n.live.Find(id); b != nil {
		return b.Agreed
	}
	return 0
}

// must panics on an error that only a mistake of the simulation itself can cause.
func (w *world) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("simulation of seed %d: %v", w.plan.Seed, err))
	}
}
