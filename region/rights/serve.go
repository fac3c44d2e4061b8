package rights

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/allocator/exchange"
)

// Serve answers a peer's message. The message passes the machine, the store and the journal before
// the reply leaves. Serve fails if too many messages wait, or if ctx ends.
func (e *Engine) Serve(ctx context.Context, m exchange.Message) (exchange.Reply, error) {
	id, reply, leave := e.replies.wait()
	defer leave()
	if posted := e.post(e.Asked(id, m)); !posted {
		return exchange.Reply{}, fmt.Errorf("node %s has too much to do: ask again later", e.config.Node)
	}
	select {
	case answer := <-reply:
		return answer, nil
	case <-ctx.Done():
		return exchange.Reply{}, ctx.Err()
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
	id, answer, leave := e.testimonies.wait()
	defer leave()
	if posted := e.post(e.Questioned(id, q)); !posted {
		return exchange.Testimonies{}, fmt.Errorf("node %s has too much to do: ask again later", e.config.Node)
	}
	select {
	case all := <-answer:
		return all, nil
	case <-ctx.Done():
		return exchange.Testimonies{}, ctx.Err()
	}
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
