package oracle

import (
	"time"

	"pgregory.net/rapid"
)

// epoch is a multiple of every window used here.
var epoch = time.Unix(1_800_000_000, 0)

// sec is a time n seconds after the epoch.
func sec(n float64) time.Time { return epoch.Add(time.Duration(n * float64(time.Second))) }

// fixed is a fixed window of one minute.
func fixed(limit int64) Limit {
	return Limit{Limit: limit, Window: time.Minute, Algorithm: "fixed_window",
		ClockSlack: 100 * time.Millisecond}
}

// ofKind returns a limit of any algorithm in ten seconds, to be judged with exact clocks.
func ofKind(algorithm string, limit, burst int64) Limit {
	return Limit{Limit: limit, Window: 10 * time.Second, Algorithm: algorithm, Burst: burst}
}

// us is a time n microseconds after the epoch.
func us(n int64) time.Time { return epoch.Add(time.Duration(n) * time.Microsecond) }

// answers makes honest answers, of one node for each region, numbered in order.
type answers struct{ next map[string]uint64 }

func (n *answers) at(region string, when time.Time, cost int64, o Outcome) Answer {
	if n.next == nil {
		n.next = map[string]uint64{}
	}
	n.next[region]++
	return Answer{
		Bucket: "orders/42", Region: region, Node: region + "-1", Sequence: n.next[region],
		Cost: cost, Outcome: o, Cell: when.Unix() / 60, At: when.UnixMicro(), Sent: when,
		Seen: when,
	}
}

// under makes an honest answer under any limit, n microseconds after the epoch.
func (n *answers) under(l Limit, region string, at, cost int64, o Outcome) Answer {
	a := n.at(region, us(at), cost, o)
	a.Cell = l.CellOf(a.At)
	return a
}

// lost makes a request whose outcome is unknown, under way from..to
// microseconds after the epoch.
func (n *answers) lost(region string, from, to, cost int64) Answer {
	a := n.at(region, us(from), cost, Unknown)
	a.Seen = us(to)
	return a
}

// record passes a history to a new judge.
func record(l Limit, history []Answer) *Judge {
	j := New(l)
	for _, a := range history {
		j.Record(a)
	}
	return j
}

// drawHistory draws some answers in a few cells and buckets, in an order in which they may have
// been seen. They are honest, but may exceed the ceiling.
func drawHistory(t *rapid.T) []Answer {
	var n answers
	history := make([]Answer, rapid.IntRange(0, 60).Draw(t, "answers"))
	for i := range history {
		region := rapid.SampledFrom([]string{"ap", "eu", "us"}).Draw(t, "region")
		at := epoch.Add(time.Duration(rapid.IntRange(0, 180).Draw(t, "second")) * time.Second)
		cost := rapid.Int64Range(0, 4).Draw(t, "cost")
		a := n.at(region, at, cost, rapid.SampledFrom([]Outcome{Unknown, Admitted, Denied}).Draw(t,
			"outcome"))
		a.Bucket = rapid.SampledFrom([]string{"a", "b"}).Draw(t, "bucket")
		before := time.Duration(rapid.IntRange(0, 2).Draw(t, "took")) * 400 * time.Millisecond
		after := time.Duration(rapid.IntRange(0, 2).Draw(t, "returned")) * 400 * time.Millisecond
		a.Sent, a.Seen = at.Add(-before), at.Add(after)
		history[i] = a
	}
	return rapid.Permutation(history).Draw(t, "order")
}
