package network

import "time"

// timed is something that arrives at a certain time.
type timed[T any] struct {
	due  time.Time
	what T
}

// queue holds what is on its way over one link, in the order of arrival. The
// zero value is empty.
type queue[T any] struct {
	items []timed[T]
	head  int // items before it are gone
}

// push appends an item that is due at the given time, or when its predecessor is due if that is
// later.
func (q *queue[T]) push(due time.Time, what T) {
	if n := len(q.items); n > q.head && q.items[n-1].due.After(due) {
		due = q.items[n-1].due
	}
	q.items = append(q.items, timed[T]{due, what})
}

// len returns the number of items on their way.
func (q *queue[T]) len() int { return len(q.items) - q.head }

// next returns when the first item arrives; ok is false on an empty queue.
func (q *queue[T]) next() (due time.Time, ok bool) {
	if q.len() == 0 {
		return time.Time{}, false
	}
	return q.items[q.head].due, true
}

// pop removes and returns the first item if it is due.
func (q *queue[T]) pop(now time.Time) (what T, ok bool) {
	due, ok := q.next()
	if !ok || due.After(now) {
		return what, false
	}
	what = q.items[q.head].what
	q.items[q.head] = timed[T]{} // release its memory
	q.head++
	// Once half of the slice is unused, move the rest down. This keeps both the memory and the
	// copying proportional to the items on their way.
	if q.head*2 >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
	return what, true
}

// postpone delays all items that are due before the given time until then.
func (q *queue[T]) postpone(until time.Time) {
	for i := q.head; i < len(q.items); i++ {
		if q.items[i].due.Before(until) {
			q.items[i].due = until
		}
	}
}
