package admit

import "context"

type handoverKey struct{}

// OnHandover returns a context with which f is called when the node has done its own part of a single check: it was matched
// with limits, and waits for the store from then on. f may not be called at all, where a check ends before.
func OnHandover(ctx context.Context, f func()) context.Context {
	return context.WithValue(ctx, handoverKey{}, f)
}

func handedOver(ctx context.Context) {
	if f, ok := ctx.Value(handoverKey{}).(func()); ok {
		f()
	}
}
