package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/client"
)

// A service that is asked often for the same accounts keeps a bucket of each.
func Example() {
	conn, err := grpc.NewClient("localhost:8081",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	limits := client.New(conn, client.Options{Prefetch: true})
	account := limits.Bucket("api", map[string]string{"account": "42", "plan": "free"})

	http.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		switch d, err := account.Allow(r.Context(), 1); {
		case err != nil:
			http.Error(w, "no node answers", http.StatusServiceUnavailable)
		case !d.Allowed:
			http.Error(w, fmt.Sprintf("come again in %v", d.RetryAfter), http.StatusTooManyRequests)
		default:
			fmt.Fprintln(w, "served")
		}
	})

	server := http.Server{Addr: ":8000"}
	err = server.ListenAndServe()
	// What the client holds goes back before its connection ends.
	fmt.Println(errors.Join(err, limits.Close(), conn.Close()))
}

// A request that may come twice has an id, and one that may be undone asks for a receipt.
func ExampleClient_Check() {
	conn, err := grpc.NewClient("localhost:8081",
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := client.New(conn, client.Options{}).Check(context.Background(), client.Request{
		Domain: "api", Descriptors: map[string]string{"account": "42"}, Cost: 10, ID: "order-815",
		Receipt: true})
	fmt.Println(d.Allowed, d.Receipt, errors.Join(err, conn.Close()))
}
