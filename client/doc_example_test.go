package client_test

import (
	"context"

	"github.com/quotad/quotad/client"
)

// The lines of docs/how-to/go-client.md and docs/how-to/language-models.md. The nodes of its addresses do not exist.

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

func reserveAndSettle(ctx context.Context, limits *client.Client, model func(most int64) (used int64)) error {
	user := map[string]string{"user": "7"}
	d, err := limits.Check(ctx, client.Request{Domain: "llm", Descriptors: user,
		Cost: 4000, Receipt: true}) // the most that the answer can take
	if err != nil || !d.Allowed {
		return err // d.RetryAfter
	}
	used := model(4000)
	_, err = limits.Settle(context.WithoutCancel(ctx), d.Receipt, used) // also if the caller has gone
	return err
}

func chargeAfterwards(ctx context.Context, limits *client.Client, model func() (answer string, used int64)) error {
	user := map[string]string{"user": "7"}
	d, err := limits.Check(ctx, client.Request{Domain: "llm", Descriptors: user, Question: true})
	if err != nil || !d.Allowed {
		return err // d.RetryAfter
	}
	answer, used := model()
	_, err = limits.Report(context.WithoutCancel(ctx), client.Request{Domain: "llm", Descriptors: user,
		Cost: used, ID: answer}) // with the answer's own id it can be sent again
	return err
}

func meterAStream(ctx context.Context, limits *client.Client, tokens <-chan int64) error {
	m := limits.Meter("llm", map[string]string{"user": "7"}, 200) // 200 tokens at a time
	defer m.Close(context.WithoutCancel(ctx))
	for n := range tokens {
		if d, err := m.Use(ctx, n); err != nil || !d.Allowed {
			return err // end the stream: nothing is left
		}
	}
	return nil
}

// All compile with the client as it is.
var _ = []func(context.Context) bool{askNode, decideInMemory}
var _, _, _ = reserveAndSettle, chargeAfterwards, meterAStream
