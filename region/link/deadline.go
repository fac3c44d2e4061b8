package link

import (
	"sync"
	"time"
)

// deadline wakes those who wait on a condition when a time has passed. It is
// guarded by the condition's lock.
type deadline struct {
	passed bool
	timer  *time.Timer // of the deadline in force, if it lies ahead
	number int         // of the deadline in force; an older timer finds another
}

// set replaces the deadline; the zero time means none. Those who wait look
// again at once.
func (d *deadline) set(t time.Time, cond *sync.Cond) {
	d.stop()
	left := time.Until(t)
	d.passed = !t.IsZero() && left <= 0
	if !t.IsZero() && left > 0 {
		mine := d.number
		d.timer = time.AfterFunc(left, func() {
			cond.L.Lock()
			defer cond.L.Unlock()
			if d.number == mine {
				d.passed = true
				cond.Broadcast()
			}
		})
	}
	cond.Broadcast()
}

// stop lets go of the timer, and disowns it if it is firing already.
func (d *deadline) stop() {
	d.number++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
