package client

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"
)

const (
	// MaxAddresses bounds the addresses of a Dial.
	MaxAddresses = 64
	// A node that does not answer is tried again after firstRetry, and later at least every
	// lastRetry. connectTimeout is how long a try may take.
	firstRetry     = 50 * time.Millisecond
	lastRetry      = time.Second
	connectTimeout = 2 * time.Second
	// A connection is closed if what was sent is not acknowledged within aliveTimeout. It is asked
	// whether it lives when nothing was received for askAlive: a node allows that every 10 s.
	askAlive     = 20 * time.Second
	aliveTimeout = 2 * time.Second
	// inTurn has calls go to the addresses that are connected, one after the other.
	inTurn = `{"loadBalancingConfig":[{"round_robin":{}}]}`
)

// Dial returns a client of the nodes at these addresses, HOST:PORT each, which all must be of one
// region. Calls go to the connected ones in turn. Of a single address whose host is a name, all
// that the name stands for are used. Dial does not wait: the first calls do, for Options.Timeout at
// most. A node that is gone is tried again after 50 ms and, if it stays away, every second. Calls
// pass by proxies that the environment names.
//
// Close closes the connections.
func Dial(o Options, addresses ...string) (*Client, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if err := validateAddresses(addresses); err != nil {
		return nil, err
	}
	options, err := o.dialOptions(addresses)
	if err != nil {
		return nil, err
	}
	target := "dns:///" + addresses[0]
	if len(addresses) > 1 {
		var state resolver.State
		for _, at := range addresses {
			state.Endpoints = append(state.Endpoints, resolver.Endpoint{
				Addresses: []resolver.Address{{Addr: at, ServerName: at}}})
		}
		several := manual.NewBuilderWithScheme("quotad")
		several.InitialState(state)
		options = append(options, grpc.WithResolvers(several))
		target = "quotad:///nodes"
	}
	conn, err := grpc.NewClient(target, append(options, o.DialOptions...)...)
	if err != nil {
		return nil, fmt.Errorf("quotad: dial %s: %w", strings.Join(addresses, ", "), err)
	}
	conn.Connect()
	c := New(conn, o)
	c.owned = conn
	return c, nil
}

// dialOptions returns what all connections have in common.
func (o Options) dialOptions(addresses []string) ([]grpc.DialOption, error) {
	trust, secure := o.Credentials, true
	if trust == nil {
		trust = insecure.NewCredentials()
	}
	if trust.Info().SecurityProtocol == "insecure" {
		secure = false
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(trust),
		grpc.WithDisableServiceConfig(),
		grpc.WithDefaultServiceConfig(inTurn),
		grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: connectTimeout,
			Backoff: backoff.Config{BaseDelay: firstRetry, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: lastRetry}}),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: askAlive,
			Timeout: aliveTimeout}),
	}
	if o.Token == "" {
		return options, nil
	}
	for _, at := range addresses {
		if !secure && !isLoopback(at) {
			return nil, fmt.Errorf("quotad: dial %s: Options.Token would be sent in plain text; set "+
				"Options.Credentials to credentials.NewTLS(&tls.Config{})", at)
		}
	}
	return append(options, grpc.WithPerRPCCredentials(bearer{o.Token, secure})), nil
}

func validateAddresses(all []string) error {
	switch {
	case len(all) == 0:
		return errors.New("quotad: dial: no address; give HOST:PORT of one or more nodes of the region")
	case len(all) > MaxAddresses:
		return fmt.Errorf("quotad: dial: %d addresses; give at most %d", len(all), MaxAddresses)
	}
	seen := map[string]bool{}
	for _, at := range all {
		host, port, err := net.SplitHostPort(at)
		switch {
		case err != nil:
			return fmt.Errorf("quotad: dial %q: not HOST:PORT (%w); such as quotad:8081 or [::1]:8081",
				at, err)
		case host == "" || port == "" || strings.ContainsAny(at, "/ "):
			return fmt.Errorf("quotad: dial %q: not HOST:PORT; such as quotad:8081 or [::1]:8081", at)
		case seen[at]:
			return fmt.Errorf("quotad: dial %q: given twice; give each address once", at)
		}
		seen[at] = true
	}
	return nil
}

// isLoopback reports whether an address is on the loopback interface by what it says alone.
func isLoopback(at string) bool {
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.Unmap().IsLoopback()
}
