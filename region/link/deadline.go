package link

import (
	"sync"
	"time"
)

// Deadline wakes those who wait on a condition when a time has passed. It is
// guarded by the condition's lock.
type Deadline struct {
	Passed bool
	timer  *time.Timer // of the deadline in force, if it lies ahead
	number int         // of the deadline in force; an older timer finds another
}

// Set replaces the deadline; the zero time means none. Those who wait look
// again at once.
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

// Stop lets go of the timer, and disowns it if it is firing already.
func (d *Deadline) Stop() {
	d.number++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
