package gossip

import (
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// maxQueued bounds the changes that wait to be sent. At most one for each key waits, and for
	// passedOn an older one of it. Beyond the bound, those already sent most often are dropped.
	maxQueued = 4096
	// passedOn is for how long a change is passed on at least, and twice that at most. One that spread
	// for longer than others remember it would be news there again, and never come to an end.
	passedOn = 5 * time.Second
)

// outbox holds the changes that are being spread. Those sent least often go first, so a new change
// overtakes the repetitions of older ones. It is safe for concurrent use.
type outbox struct {
	retransmitMult int
	members        func() int

	mu         sync.Mutex
	young, old *memberlist.TransmitLimitedQueue
	turned     time.Time // when what is old ceased to be young
	dropped    uint64
}

// newOutbox returns an empty outbox. members returns how many nodes there are.
func newOutbox(retransmitMult int, members func() int) *outbox {
	o := &outbox{retransmitMult: retransmitMult, members: members, turned: time.Now()}
	o.young, o.old = o.empty(), o.empty()
	return o
}

func (o *outbox) empty() *memberlist.TransmitLimitedQueue {
	return &memberlist.TransmitLimitedQueue{RetransmitMult: o.retransmitMult, NumNodes: o.members}
}

// turn drops the changes that were passed on for long enough. The caller holds mu.
func (o *outbox) turn() {
	if time.Since(o.turned) < passedOn {
		return
	}
	o.dropped += uint64(o.old.NumQueued())
	o.old, o.young, o.turned = o.young, o.empty(), time.Now()
}

// put queues an encoded change in place of an older one of the same key.
func (o *outbox) put(key string, encoded []byte) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turn()
	o.young.QueueBroadcast(&parcel{key, encoded})
	for _, q := range []*memberlist.TransmitLimitedQueue{o.old, o.young} {
		if over := min(o.queued()-maxQueued, q.NumQueued()); over > 0 {
			q.Prune(q.NumQueued() - over)
			o.dropped += uint64(over)
		}
	}
}

// take returns changes of at most limit bytes in all, counting overhead bytes for each.
func (o *outbox) take(overhead, limit int) [][]byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.turn()
	all := o.young.GetBroadcasts(overhead, limit)
	for _, b := range all {
		limit -= overhead + len(b)
	}
	return append(all, o.old.GetBroadcasts(overhead, limit)...)
}

// counts returns how many changes wait and how many were dropped.
func (o *outbox) counts() (queued int, dropped uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.queued(), o.dropped
}

func (o *outbox) queued() int { return o.young.NumQueued() + o.old.NumQueued() }

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
