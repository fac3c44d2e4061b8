package client_test

import (
	"context"
	"fmt"
	"time"

	"github.com/quotad/quotad/client"
)

// A service asks before it serves. The address is that of a node of its region.
func Example() {
	address, stop := startExampleNode()
	defer stop()

	limits, err := client.Dial(client.Options{Timeout: 10 * time.Second}, address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limits.Close() }()
	for range 2 {
		d, err := limits.Check(context.Background(), client.Request{Domain: "api",
			Descriptors: map[string]string{"account": "42"}, Cost: 6})
		switch {
		case err != nil:
			fmt.Println(err)
		case d.Allowed:
			fmt.Println("serve it;", d.Remaining, "units are left")
		default:
			fmt.Println("come again in", d.RetryAfter)
		}
	}
	// Output:
	// serve it; 4 units are left
	// come again in 1m0s
}

// A token is sent over TLS alone, or to the same machine.
func ExampleDial() {
	_, err := client.Dial(client.Options{Token: "qt1_..."}, "quotad-1:8081", "quotad-2:8081")
	fmt.Println(err)
	// Output:
	// quotad: dial quotad-1:8081: Options.Token would be sent in plain text; set Options.Credentials to credentials.NewTLS(&tls.Config{})
}

// While no node can be asked, each client of this service admits five requests at once and one a
// second of each account.
func ExampleOnUnreachable() {
	nobody, stop := startExampleNode()
	stop()

	limits, err := client.Dial(client.Options{OnUnreachable: client.Local,
		Local: client.LocalLimit{Rate: 1, Burst: 5}}, nobody)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limits.Close() }()
	d, err := limits.Check(context.Background(), client.Request{Domain: "api",
		Descriptors: map[string]string{"account": "42"}})
	fmt.Println(d.Allowed, d.Unreachable, err)
	// Output: true true <nil>
}

// A request that may come twice has an id, and one that may be undone asks for a receipt.
func ExampleClient_Check() {
	address, stop := startExampleNode()
	defer stop()

	limits, err := client.Dial(client.Options{Timeout: 10 * time.Second}, address)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = limits.Close() }()
	d, err := limits.Check(context.Background(), client.Request{Domain: "api",
		Descriptors: map[string]string{"account": "42"}, Cost: 10, ID: "order-815", Receipt: true})
	fmt.Println(d.Allowed, d.Receipt, err)
	// Output: true qr1_1 <nil>
}

// A service that is asked often for the same accounts keeps a bucket of each. Where their limits
// say consistency: prefetch, most requests are decided without a call.
func ExampleClient_Bucket() {
	address, stop := startExampleNode()
	defer stop()

	limits, err := client.Dial(client.Options{Prefetch: true, Timeout: 10 * time.Second}, address)
	if err != nil {
		fmt.Println(err)
		return
	}
	account := limits.Bucket("api", map[string]string{"account": "42"})
	d, err := account.Allow(context.Background(), 1)
	fmt.Println(d.Allowed, err)
	fmt.Println(limits.Close()) // gives back what the client holds
	// Output:
	// true <nil>
	// <nil>
}
