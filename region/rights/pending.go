package rights

import "sync"

// pendingReplies is where answers are handed to who waits for them, by number. The zero value is ready to use.
type pendingReplies[T any] struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan<- T
}

// wait returns a number, from 1 on, and where the answer to it will come; leave ends the wait.
func (d *pendingReplies[T]) wait() (id uint64, answer <-chan T, leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[uint64]chan<- T{}
	}
	d.last++
	id = d.last
	c := make(chan T, 1)
	d.waiting[id] = c
	return id, c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting, id)
	}
}

// hand gives an answer to who waits for it, if anybody still does.
func (d *pendingReplies[T]) hand(id uint64, answer T) {
	d.mu.Lock()
	c := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if c != nil {
		c <- answer
	}
}
