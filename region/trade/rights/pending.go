package rights

import "sync"

// pendingReplies hands answers to the goroutines that wait for them, by number. The zero value is
// ready to use.
type pendingReplies[T any] struct {
	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan<- T
}

// wait returns a number, from 1 on, and the channel on which the answer to it will come. leave ends
// the wait.
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

// hand gives an answer to the goroutine that waits for it, if it still does.
func (d *pendingReplies[T]) hand(id uint64, answer T) {
	d.mu.Lock()
	c := d.waiting[id]
	delete(d.waiting, id)
	d.mu.Unlock()
	if c != nil {
		c <- answer
	}
}
