package client_test

import (
	"context"

	"github.com/quotad/quotad/client"
)

// The lines of docs/how-to/go-client.md. The nodes of its addresses do not exist.

func askNode(ctx context.Context) bool {
	limits, err := client.Dial(client.Options{}, "quotad-1:8081", "quotad-2:8081") // nodes of its region
	if err != nil {
		return false
	}
	d, err := limits.Check(ctx, client.Request{Domain: "api",
		Descriptors: map[string]string{"account": "42"}})
	serve := err == nil && d.Allowed // else d.RetryAfter
	return serve
}

func decideInMemory(ctx context.Context) bool {
	limits, err := client.Dial(client.Options{Prefetch: true}, "quotad-1:8081")
	if err != nil {
		return false
	}
	account := limits.Bucket("api", map[string]string{"account": "42", "plan": "free"}) // keep it
	d, err := account.Allow(ctx, 1)                                                     // d.Allowed, d.RetryAfter, d.Remaining, ...
	serve := err == nil && d.Allowed
	_ = limits.Close() // gives back what the client holds
	return serve
}

// Both compile with the client as it is.
var _ = []func(context.Context) bool{askNode, decideInMemory}
