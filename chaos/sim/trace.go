package sim

import (
	"fmt"
	"strings"
	"time"
)

// trace is what happened, as it is told after a failure.
type trace struct {
	lines []line
	calls bool
}

type line struct {
	at     int64
	region int // -1: all
	text   string
}

// tell writes something down that happened in a region.
func (w *world) tell(r *region, format string, args ...any) {
	if w.trace == nil {
		return
	}
	index := -1
	if r != nil {
		index = r.index
	}
	w.trace.lines = append(w.trace.lines, line{w.now, index, fmt.Sprintf(format, args...)})
}

// timeline is the end of what happened, a column for each region.
func (t *trace) timeline(regions []RegionPlan, most int) string {
	var b strings.Builder
	lines := t.lines
	if len(lines) > most {
		fmt.Fprintf(&b, "(%d earlier lines left out)\n", len(lines)-most)
		lines = lines[len(lines)-most:]
	}
	fmt.Fprintf(&b, "%12s ", "time")
	for _, r := range regions {
		fmt.Fprintf(&b, " %-*s", column, r.Name)
	}
	b.WriteString("\n")
	for _, l := range lines {
		text := l.text
		indent := max(l.region, 0) * (column + 1)
		fmt.Fprintf(&b, "%12.6f  %s%s\n", time.Duration(l.at*1000).Seconds(), strings.Repeat(" ", indent), text)
	}
	return b.String()
}

// column is how wide a region's part of the timeline is; what is longer runs on into the next.
const column = 24
