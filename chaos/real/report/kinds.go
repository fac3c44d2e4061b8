package report

import "time"

// kind is the text of the page about an algorithm.
type kind struct {
	// ceiling is the title of the chart of cells. tallest is the name of the most that a cell came
	// to. cells is the word for several cells. bound is the name of the ceiling.
	ceiling, tallest, cells, bound string
}

var kinds = map[string]kind{
	"fixed_window": {"Admitted in each window, all regions together", "Fullest window", "windows",
		"limit"},
	"sliding_window_counter": {"Estimate of the sliding window, at the worst instant of each cell",
		"Highest estimate", "cells", "limit"},
	"sliding_window_log": {"Admitted in the worst interval of a window's length that ends in each cell",
		"Fullest interval", "cells", "limit"},
	"token_bucket": {"Tokens missing from the full bucket, at the worst instant of each cell",
		"Most tokens missing", "cells", "bucket"},
	"leaky_bucket": {"Units waiting in the queue, at the worst instant of each cell",
		"Longest queue", "cells", "queue"},
}

// kind returns the texts for the limit's algorithm, or general ones for an unknown algorithm.
func (l Limit) kind() kind {
	if k, ok := kinds[l.Algorithm]; ok {
		return k
	}
	return kind{"What each cell came to, all regions together", "Fullest cell", "cells", "limit"}
}

func ceilingTitle(l Limit) string { return l.kind().ceiling + "." }

// terms describes the limit, such as "1,000 per 1 min, bucket of 200".
func (l Limit) terms() string {
	text := count(l.Units)
	if l.Window > 0 {
		text += " per " + per(l.Window)
	}
	switch {
	case l.Burst <= 0:
	case l.Algorithm == "leaky_bucket":
		text += ", queue of " + count(l.Burst)
	default:
		text += ", bucket of " + count(l.Burst)
	}
	return text
}

// per formats a window: "10 s", but "minute" instead of "1 min".
func per(d time.Duration) string {
	switch d {
	case time.Second:
		return "second"
	case time.Minute:
		return "minute"
	case time.Hour:
		return "hour"
	case 24 * time.Hour:
		return "day"
	}
	return span(d)
}
