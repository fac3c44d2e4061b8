package link

import (
	"sync"
	"time"
)

// Deadline wakes the goroutines that wait on a condition when a time has passed. The condition's
// lock guards it.
type Deadline struct {
	Passed bool
	timer  *time.Timer // of the deadline in force, if it is in the future
	number int         // of the deadline in force; a timer of an older one finds another number
}

// Set replaces the deadline; the zero time means none. It wakes all that wait on cond.
func (d *Deadline) Set(t time.Time, cond *sync.Cond) {
	d.Stop()
	left := time.Until(t)
	d.Passed = !t.IsZero() && left <= 0
	if !t.IsZero() && left > 0 {
		mine := d.number
		d.timer = time.AfterFunc(left, func() {
			cond.L.Lock()
			defer cond.L.Unlock()
			if d.number == mine {
				d.Passed = true
				cond.Broadcast()
			}
		})
	}
	cond.Broadcast()
}

// Stop stops the timer. If it is firing already, it has no effect.
func (d *Deadline) Stop() {
	d.number++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
