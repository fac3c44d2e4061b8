// Package load offers requests at a steady pace, whatever their outcome.
//
// The generator is open-loop: it sends by the clock and never waits for an answer, because real
// callers do not slow down either when a limiter does. [Stats] says what it could not send.
//
// One generator serves one region. Its schedule is an even grid, one request every cost/rate
// seconds, and every request is moved by up to 3 % of the spacing. The first offset and this jitter
// come from the seed. What has passed of a spacing is kept over a change of the rate.
//
// The generator wakes at most every 5 ms and sends what is due, so that 1,000 requests a second need
// 200 wake-ups. At lower rates, requests are sent at their exact times. After a delay of the machine
// all overdue requests are still sent, but at most at four times the pace.
//
// Time is time.Now and time.NewTimer, so testing/synctest can virtualise it.
package load
