package fronts

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/chaos/lab/network"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// The ports of a server on a network in memory.
const (
	WebPort   = 8080
	RPCPort   = 8081
	AdminPort = 8083
)

// Client is on a host of a network in memory, and a server on another.
type Client struct {
	*network.Host
	RPC *grpc.ClientConn
	Web *http.Client
	// At and AdminAt are host:port of the server's HTTP ports.
	At, AdminAt string
}

// Serve serves ports on a network in memory, until f returns. close ends the server.
func Serve(t *testing.T, ports map[int]func(net.Listener) error, close func() error, f func(*Client)) {
	t.Helper()
	network := network.New()
	defer network.Close()
	server := network.Host("server")
	c := &Client{Host: network.Host("client"), At: fmt.Sprintf("%s:%d", server.IP(), WebPort),
		AdminAt: fmt.Sprintf("%s:%d", server.IP(), AdminPort)}
	var serving sync.WaitGroup
	defer serving.Wait()
	for port, serve := range ports {
		l, err := server.Listen(port)
		suite.Must(t, err)
		serving.Go(func() {
			if err := serve(l); err != nil {
				t.Errorf("serving on %d ended with %v", port, err)
			}
		})
	}
	defer close()
	transport := &http.Transport{DialContext: c.DialContext}
	defer transport.CloseIdleConnections()
	c.Web = &http.Client{Transport: transport}
	var err error
	c.RPC, err = grpc.NewClient(fmt.Sprintf("passthrough:///%s:%d", server.IP(), RPCPort),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return c.DialContext(ctx, "tcp", address)
		}))
	suite.Must(t, err)
	defer c.RPC.Close()
	f(c)
}

// Listen serves one of a server's ports on a loopback port until the end of the test, and
// returns its URL.
func Listen(t *testing.T, serve func(net.Listener) error, closed func() error) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	suite.Must(t, err)
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := serve(l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		if err := closed(); err != nil {
			t.Error(err)
		}
		serving.Wait()
	})
	return "http://" + l.Addr().String()
}
