package gossip

import (
	"log/slog"
	"sync"
	"sync/atomic"
)

// delegate connects memberlist with the caller's state. It implements memberlist.Delegate.
// memberlist calls it from goroutines of its own, in which a panic would end the process, so every
// method recovers.
type delegate struct {
	meta   atomic.Pointer[[]byte]
	state  State
	outbox *outbox
	roster *roster
	log    *slog.Logger
	panics Recoverer

	mu     sync.RWMutex // held shared while the state is in use
	closed bool

	rejected atomic.Uint64 // messages and states that could not be used
}

// close makes sure that the state is no longer used.
func (d *delegate) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
}

// NodeMeta returns what the other nodes are told about this one.
func (d *delegate) NodeMeta(int) []byte { return *d.meta.Load() }

// NotifyMsg takes in a message, and passes a change on if it was news.
func (d *delegate) NotifyMsg(b []byte) {
	defer d.panics.recover()
	m, err := decode(b)
	if err != nil {
		d.reject("message", err)
		return
	}
	if m.kind == kindGoodbye {
		d.roster.goodbye(m.name)
		return
	}
	if news := d.merge("change", m.change); news {
		d.outbox.put(m.name, append([]byte(nil), b...))
	}
}

// GetBroadcasts returns the changes to send with the next packet.
func (d *delegate) GetBroadcasts(overhead, limit int) [][]byte {
	defer d.panics.recover()
	return d.outbox.take(overhead, limit)
}

// LocalState returns the whole state for an exchange, or nil if there is none to send.
func (d *delegate) LocalState(bool) []byte {
	defer d.panics.recover()
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return nil
	}
	b, err := d.state.MarshalBinary()
	switch {
	case err != nil:
		d.log.Error("gossip: cannot marshal the state; this exchange goes without it", "err", err)
		return nil
	case len(b) > MaxState:
		d.log.Error("gossip: the state is too large to be exchanged; make it smaller", "bytes",
			len(b), "limit", MaxState)
		return nil
	}
	return b
}

// MergeRemoteState takes in the whole state of another node. It does not pass it on: other
// exchanges do that.
func (d *delegate) MergeRemoteState(b []byte, _ bool) {
	defer d.panics.recover()
	d.merge("state", b)
}

func (d *delegate) merge(what string, b []byte) (news bool) {
	d.mu.RLock()
	defer d.mu.RUnlock()
	if d.closed {
		return false
	}
	news, err := d.state.Merge(b)
	if err != nil {
		d.reject(what, err)
		return false
	}
	return news
}

// reject counts bytes from the network that could not be used. It logs them at debug only, because
// anybody can send any amount of them.
func (d *delegate) reject(what string, err error) {
	d.rejected.Add(1)
	d.log.Debug("gossip: rejected what another node sent", "what", what, "err", err)
}
