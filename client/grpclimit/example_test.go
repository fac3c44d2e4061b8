package grpclimit_test

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/client/grpclimit"
)

// never stands for a client, which client.Dial makes. It admits nothing.
type never struct{}

func (never) Check(context.Context, client.Request) (client.Decision, error) {
	return client.Decision{Limit: "account", LimitUnits: 100, RetryAfter: time.Minute}, nil
}

// A server limits all calls of an account, which its gateway has verified.
func Example() {
	limits := never{} // limits, err := client.Dial(client.Options{}, "quotad:8081")

	o := grpclimit.Options{Domain: "api", Key: grpclimit.By(grpclimit.Values{
		"account": grpclimit.Metadata("x-account"), "method": grpclimit.Method()})}
	unary, stream := grpclimit.Unary(limits, o), grpclimit.Stream(limits, o)
	server := grpc.NewServer(grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream))
	defer server.Stop()

	// What a caller is told:
	_, err := unary(context.Background(), nil, &grpc.UnaryServerInfo{FullMethod: "/shop.v1/Buy"}, nil)
	fmt.Println(err)
	retry, violated := details(err)
	fmt.Println(status.Code(err), retry, violated)
	// Output:
	// rpc error: code = ResourceExhausted desc = the call is over a limit
	// ResourceExhausted 1m0s limit:account the limit is 100 units
}
