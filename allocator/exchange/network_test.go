//go:build !race

package exchange

import (
	"cmp"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/quantity"
)

// network says what becomes of messages.
type network struct {
	delay     int64 // one way
	loss      int   // per cent
	duplicate int   // per cent
	late      int   // per cent that take longer than a cell
	cut       map[[2]string]bool
	hintDelay int64
}

type queued struct {
	at  quantity.NodeTime
	seq int
	do  func()
}

type eventQueue []queued

func (q eventQueue) Len() int { return len(q) }
func (q eventQueue) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(q[i].at, q[j].at), cmp.Compare(q[i].seq, q[j].seq)) < 0
}
func (q eventQueue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)   { *q = append(*q, x.(queued)) }
func (q *eventQueue) Pop() any {
	last := len(*q) - 1
	e := (*q)[last]
	*q = (*q)[:last]
	return e
}

// transmit carries a message from region to region, or loses, repeats or delays it.
func (c *cluster) transmit(from, to string, extra int64, deliver func()) {
	copies := 1
	if c.rand.IntN(100) < c.net.duplicate {
		copies++
	}
	for range copies {
		if c.net.cut[[2]string{from, to}] || c.rand.IntN(100) < c.net.loss {
			continue
		}
		delay := c.net.delay + extra
		if c.rand.IntN(100) < c.net.late {
			delay += c.rand.Int64N(4 * allocator.Second)
		}
		c.after(delay, deliver)
	}
}

// send makes a call; its reply counts only in the life it was made in.
func (r *testRegion) send(call Call, life int) {
	r.calls[call.ID] = true
	over := func(e Event) {
		if r.born == life && r.calls[call.ID] {
			delete(r.calls, call.ID)
			r.step(e)
		}
	}
	r.after(call.Timeout, func() { over(Unanswered{ID: call.ID}) })
	to := r.anyNode(call.Peer)
	r.transmit(r.name, call.Peer, 0, func() {
		to.asked++
		id := to.asked
		to.replies[id] = func(reply Reply) {
			delete(to.replies, id)
			to.durable(reply, r.name)
			r.transmit(to.name, r.name, 0, func() { over(Answered{ID: call.ID, Reply: reply}) })
		}
		buckets := make([]*Bucket, len(call.Message.Asks))
		for i := range buckets {
			buckets[i] = r.bucket
		}
		to.step(Asked{ID: id, Message: call.Message, Buckets: buckets})
	})
}

// gossip carries a hint to all nodes but its own.
func (r *testRegion) gossip(h Hint) {
	for _, name := range r.names {
		for _, n := range r.nodes(name) {
			if n != r {
				r.transmit(r.name, name, r.net.hintDelay-r.net.delay,
					func() { n.step(Heard{Hint: h}) })
			}
		}
	}
}

// isolate cuts a region off from all others, or heals.
func (c *cluster) isolate(name string, cut bool) {
	for _, other := range c.names {
		if other != name {
			c.net.cut[[2]string{name, other}] = cut
			c.net.cut[[2]string{other, name}] = cut
		}
	}
}
