package sim

import "github.com/quotad/quotad/region/decide/admit"

// rows is the number of rows of the fault matrix. They are numbered from 1.
const rows = 34

// Counts counts what happened in a run.
type Counts struct {
	Events   int64
	Requests int64
	Admitted int64
	Denied   int64
	Refused  int64 // neither: the store had no time for them
	// Spent is the number of requests admitted from prefetched units, and Remembered of those
	// denied by a denial that the node remembered.
	Spent, Remembered int64
	Owed              int64 // units that did not fit of costs that are known only afterwards
	Large             int64 // requests of large costs (Plan.Large), each counted once
	LargeAdmitted     int64 // of them, those that were admitted in the end
	Classed           int64 // admitted requests that the judge held to a class of less than all
	Proxied           int64 // requests that Envoys admitted by themselves
	Messages          int64 // between regions, without hints
	Traded            int64 // messages with asks or grants
	Hinted            int64 // hints, counted for each receiving node
	Bytes             int64 // of messages between regions, without pings and hints
	Pings             int64 // bytes of pings
	Hints             int64 // bytes of hints, counted for each receiving node
	Deeds             map[Deed]int64
	Tightness         Tightness // of what the judge allows
	Liveness          Liveness
	// Rows counts how often each row of the fault matrix fired, that is, changed a message, a
	// durable write, or a clock that was read.
	Rows [rows + 1]int64
}

func (c *Counts) decided(d admit.Decision) {
	switch {
	case d.Allowed:
		c.Admitted++
	default:
		c.Denied++
	}
	switch {
	case d.FromMemory && d.Allowed:
		c.Spent++
	case d.FromMemory:
		c.Remembered++
	}
}

func (c *Counts) sent(bytes int, asks bool) {
	c.Messages++
	if asks {
		c.Traded++
		c.Bytes += int64(bytes)
	} else {
		c.Pings += int64(bytes)
	}
}

func (c *Counts) gossiped(bytes int) {
	c.Hinted++
	c.Hints += int64(bytes)
}

// Add adds the counts of another run.
func (c *Counts) Add(o *Counts) {
	c.Events += o.Events
	c.Requests += o.Requests
	c.Admitted += o.Admitted
	c.Denied += o.Denied
	c.Refused += o.Refused
	c.Spent += o.Spent
	c.Remembered += o.Remembered
	c.Owed += o.Owed
	c.Classed += o.Classed
	c.Large += o.Large
	c.LargeAdmitted += o.LargeAdmitted
	c.Proxied += o.Proxied
	c.Messages += o.Messages
	c.Bytes += o.Bytes
	c.Pings += o.Pings
	c.Hints += o.Hints
	c.Traded += o.Traded
	c.Hinted += o.Hinted
	c.Tightness.Add(o.Tightness)
	c.Liveness.Add(o.Liveness)
	if c.Deeds == nil {
		c.Deeds = map[Deed]int64{}
	}
	for d, n := range o.Deeds {
		c.Deeds[d] += n
	}
	for i, n := range o.Rows {
		c.Rows[i] += n
	}
}
