package rights

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/allocator/exchange"
)

// Serve answers a peer's message. The message passes the machine, the store and the journal before
// the reply leaves. Serve fails if too many messages wait, or if ctx ends.
func (e *Engine) Serve(ctx context.Context, m exchange.Message) (exchange.Reply, error) {
	return answered(ctx, e, &e.replies, func(id uint64) exchange.Event { return e.Asked(id, m) })
}

// answered makes the machine hear an event with a number, and waits for the answer to that number.
func answered[T any](ctx context.Context, e *Engine, to *pendingReplies[T],
	event func(id uint64) exchange.Event) (answer T, err error) {
	id, came, leave := to.wait()
	defer leave()
	if posted := e.post(event(id)); !posted {
		return answer, fmt.Errorf("node %s has too much to do: ask again later", e.config.Node)
	}
	select {
	case answer = <-came:
		return answer, nil
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

// Asked returns the machine's event for a peer's message.
func (e *Engine) Asked(id uint64, m exchange.Message) exchange.Asked {
	r := e.config.Tenure.Rules()
	buckets := make([]*exchange.Bucket, len(m.Asks))
	for i, a := range m.Asks {
		buckets[i] = r.Find(a.Bucket)
	}
	return exchange.Asked{ID: id, Message: m, Buckets: buckets}
}

// Answer answers the question of a node that recovers, of this region or another. It fails if too
// many questions wait, or if ctx ends.
func (e *Engine) Answer(ctx context.Context, q exchange.Question) (exchange.Testimonies, error) {
	return answered(ctx, e, &e.testimonies,
		func(id uint64) exchange.Event { return e.Questioned(id, q) })
}

// Questioned returns the machine's event for a question.
func (e *Engine) Questioned(id uint64, q exchange.Question) exchange.Questioned {
	r := e.config.Tenure.Rules()
	buckets := make([]*exchange.Bucket, len(q.Buckets))
	for i, d := range q.Buckets {
		buckets[i] = r.Find(d.Bucket)
	}
	return exchange.Questioned{ID: id, Question: q, Buckets: buckets}
}
