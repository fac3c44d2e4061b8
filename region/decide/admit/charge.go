package admit

import (
	"context"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/queue"
	"github.com/quotad/quotad/region/memory/rules"
)

// Charge charges units to one bucket, all or none, and reports whether the store did. It is no
// request: nothing is decided without the store, borrowed or counted as a decision or as demand. If
// the answer is lost, the units may have been charged.
func (l *Limiter) Charge(ctx context.Context, r *rules.Rules, a *rules.Applied,
	units quantity.Units) bool {
	if r.Serves() != nil {
		return false
	}
	said, err := l.queue.Decide(ctx, queue.Ask{Rules: r, Applied: []*rules.Applied{a}, Cost: units,
		Commit: true, Chunk: true, Ahead: true}.Waits(l.config.On.Now(), l.deadline))
	return err == nil && said.Admitted()
}
