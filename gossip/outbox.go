package gossip

import (
	"sync"

	"github.com/hashicorp/memberlist"
)

// maxQueued bounds the changes that wait to be sent. At most one for each key waits. Beyond the
// bound, those already sent most often are dropped.
const maxQueued = 4096

// outbox holds the changes that are being spread. Those sent least often go first, so a new change
// overtakes the repetitions of older ones. It is safe for concurrent use.
type outbox struct {
	mu      sync.Mutex
	queue   memberlist.TransmitLimitedQueue
	dropped uint64
}

// newOutbox returns an empty outbox. members returns how many nodes there are.
func newOutbox(retransmitMult int, members func() int) *outbox {
	return &outbox{queue: memberlist.TransmitLimitedQueue{RetransmitMult: retransmitMult,
		NumNodes: members}}
}

// put queues an encoded change in place of an older one of the same key.
func (o *outbox) put(key string, encoded []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue.QueueBroadcast(&parcel{key, encoded})
	if over := o.queue.NumQueued() - maxQueued; over > 0 {
		o.queue.Prune(maxQueued)
		o.dropped += uint64(over)
	}
}

// take returns changes of at most limit bytes in all, counting overhead bytes for each.
func (o *outbox) take(overhead, limit int) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.GetBroadcasts(overhead, limit)
}

// counts returns how many changes wait and how many were dropped.
func (o *outbox) counts() (queued int, dropped uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queue.NumQueued(), o.dropped
}

// parcel is one change; it implements memberlist.NamedBroadcast.
type parcel struct {
	key     string
	encoded []byte
}

// Name returns the key: a parcel replaces an older one of the same key.
func (p *parcel) Name() string { return p.key }

// Message returns the encoded change.
func (p *parcel) Message() []byte { return p.encoded }

// Finished implements memberlist.Broadcast. It does nothing.
func (p *parcel) Finished() {}

// Invalidates says the same as Name; memberlist asks for both.
func (p *parcel) Invalidates(other memberlist.Broadcast) bool {
	o, ok := other.(*parcel)
	return ok && o.key == p.key
}
