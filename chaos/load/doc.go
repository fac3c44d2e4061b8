// Package load offers requests at a steady pace, whatever becomes of them.
//
// The generator is open-loop: it sends by the clock and never waits for an
// answer, because callers out in the world do not slow down either when a
// limiter does. What it cannot do it says: see [Stats].
//
// One generator serves one region. Its schedule is an even lattice, one request
// each cost/rate seconds, with every request moved by up to 3 % of the spacing;
// the first offset and the jitter come from the seed. The jitter does not add up,
// so any second holds the rate, give or take one request. The same seed, the same
// rates and the same times of change give the same schedule.
//
// The generator wakes at most each 5 ms ([Quantum]) and sends what is due, so
// that 1,000 requests a second cost 200 wake-ups; slower loads are sent at their
// exact times. After a hiccup everything that fell due is still sent, but at most
// a stated number per quantum ([Config.Burst]).
//
// Time is time.Now and time.NewTimer, so testing/synctest virtualises it.
package load
