package sim

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/decide/admit"
)

// trace records what happens, to be shown after a failure.
type trace struct {
	lines []line
}

type line struct {
	at     int64
	region int // -1: all
	text   string
}

// tell records something that happened in a region; nil: in all of them.
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

// timeline formats the last lines of the trace, at most most of them, in a column for each region.
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
		fmt.Fprintf(&b, "%12.6f  %s%s\n", time.Duration(l.at*1000).Seconds(),
			strings.Repeat(" ", indent), text)
	}
	return b.String()
}

// column is the width of a region's column. Longer text runs on into the next one.
const column = 24

// tellEvent records what was done with rights, and what was lost and restored.
func (n *node) tellEvent(e exchange.Event) {
	if n.w.trace == nil {
		return
	}
	switch e := e.(type) {
	case exchange.Lent:
		for i, g := range e.Given {
			n.w.tell(n.r, "%s: debit %d: %v, lent %d, returned %d, share %d", n.name, i, g.Status,
				g.Row.Lent, g.Row.Returned, g.Share)
		}
	case exchange.Credited:
		c := e.Credit
		n.w.tell(n.r, "%s: credit from %s of cell %d: %v, borrowed %d, regained %d, share %d",
			n.name, c.Peer, c.Cell, e.Result.Status, e.Result.Row.Borrowed, e.Result.Row.Regained,
			e.Result.Share)
	case exchange.Recorded:
		if !e.OK {
			n.w.tell(n.r, "%s: its journal takes no rows", n.name)
		}
	case exchange.TenureChanged:
		n.w.tell(n.r, "%s stands under generation %d, %s", n.name, e.Generation, e.Epoch)
	case exchange.Lost:
		for _, l := range e.Buckets {
			n.w.tell(n.r, "%s finds %s lost", n.name, n.w.nameOf(l.Bucket.ID))
		}
	case exchange.Restored:
		n.w.tell(n.r, "%s restores %s: %v, use %d, known %v, unknown %v", n.name,
			n.w.nameOf(e.Restore.Bucket.ID), e.Result.Status, e.Restore.Use.Units,
			e.Restore.KnownPeers, e.Restore.UnknownPeers)
	}
}

func (n *node) tellDecision(rq *request, d admit.Decision) {
	word := "denies"
	if d.Allowed {
		word = "admits"
	}
	n.w.tell(n.r, "%s %s %d of %s/%s: cell %d, share %d, %s", n.name, word, rq.q.Cost, d.Limit,
		rq.q.Descriptors["account"], d.Cell, d.Share, d.Reason)
}

// nameOf names a bucket for humans.
func (w *world) nameOf(id string) string {
	if b := w.bucket(id); b != nil {
		return b.limit.policy.Name + "/" + w.plan.Keys[b.key]
	}
	return "a bucket"
}
