package admit

import "context"

type handoverKey struct{}

// OnHandover returns a context with a function that Check, Peek and Take call when the node has
// done its own part: it has found the request's limits and only waits for the store from then on.
// They do not call f if they end before that. CheckBatch does not call f.
func OnHandover(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, handoverKey{}, f)
}

func handedOver(ctx context.Context) {
	if f, ok := ctx.Value(handoverKey{}).(func()); ok {
		f()
	}
}
