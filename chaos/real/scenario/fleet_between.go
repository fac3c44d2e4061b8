package scenario

import (
	"context"
	"time"

	"github.com/quotad/quotad/chaos/real/process"
)

// Effect implements Stage. Later effects of other steps on the same ways and the same protocol
// count as well.
func (f *Fleet) Effect(s Step) int64 {
	f.mu.Lock()
	before := f.before[s.pos]
	f.mu.Unlock()
	now := f.fleet.StatsBetween(s.Between, s.And, s.OneWay)
	lost, stalled, delayed := now.Lost-before.Lost, now.Stalled-before.Stalled,
		now.Delayed-before.Delayed
	switch {
	case s.Do == "delay":
		return delayed
	case s.Do == "lose" || s.Only == "udp":
		return lost
	case s.Only == "tcp":
		return stalled
	}
	return lost + stalled
}

// between carries out a step that concerns the traffic between regions.
func (f *Fleet) between(ctx context.Context, s Step) error {
	f.mu.Lock()
	f.before[s.pos] = f.fleet.StatsBetween(s.Between, s.And, s.OneWay)
	f.mu.Unlock()
	change := func(oneWay bool,
		to func(*process.Fault)) {
		f.fleet.Change(s.Between, s.And, oneWay, to)
	}
	cut := func(on bool) func(*process.Fault) {
		return func(fault *process.Fault) {
			if s.Only != "tcp" {
				fault.CutUDP = on
			}
			if s.Only != "udp" {
				fault.CutTCP = on
			}
		}
	}
	switch s.Do {
	case "cut":
		change(s.OneWay, cut(true))
	case "heal":
		change(false, func(fault *process.Fault) { *fault = process.Fault{} })
	case "delay":
		change(s.OneWay, func(fault *process.Fault) { fault.Delay = s.By })
	case "lose":
		change(s.OneWay, func(fault *process.Fault) { fault.Loss = s.Percent })
	case "flap":
		defer change(false, cut(false))
		for end := time.Now().Add(s.For); time.Now().Before(end); {
			change(false, cut(true))
			if !Sleep(ctx, s.Every) {
				return ctx.Err()
			}
			change(false, cut(false))
			if !Sleep(ctx, s.Every) {
				return ctx.Err()
			}
		}
	}
	return nil
}
