package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// DefaultTimeout is how long a call may take if Options.Timeout does not say.
const DefaultTimeout = 100 * time.Millisecond

// Options say how a client decides, and for Dial how it connects. The zero value asks a node about
// each request.
type Options struct {
	// Prefetch lets buckets decide from memory where the limits allow it. See the package comment.
	Prefetch bool
	// Timeout is how long a Check, or the call that Allow makes, may take, its wait in the client
	// included. The caller's context may end it earlier. 0 is DefaultTimeout. Above half a second
	// it is also how long the calls of Prefetch for units, and to give them back, may take.
	Timeout time.Duration
	// OnUnreachable says what to decide when no node can be asked.
	OnUnreachable OnUnreachable
	// Local is the limit of each key for OnUnreachable: Local, and unused otherwise.
	Local LocalLimit

	// Unbatched sends each request alone, under its caller's context. Without it requests that
	// come while calls are under way go together: then no values of their contexts, such as
	// outgoing metadata, are sent.
	Unbatched bool

	// Credentials secure the connections of Dial: credentials.NewTLS(&tls.Config{...}). nil: calls
	// are sent in plain text. New does not use it.
	Credentials credentials.TransportCredentials
	// Token is sent as bearer token with each call of Dial's connections. Without Credentials it is
	// refused unless all addresses are on the loopback interface. New does not use it.
	Token string
	// DialOptions come after those of Dial, for tracing and the like. New does not use them.
	DialOptions []grpc.DialOption
}

// Validate says what is wrong with the options. Dial returns that error; of a client that New made
// each call returns it.
func (o Options) Validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("quotad: Options.Timeout is %v; give a time above 0, or 0 for %v",
			o.Timeout, DefaultTimeout)
	}
	if o.OnUnreachable < Fail || o.OnUnreachable > Local {
		return fmt.Errorf("quotad: Options.OnUnreachable is %v; choose Fail, Allow, Deny or Local",
			o.OnUnreachable)
	}
	if o.OnUnreachable == Local {
		if err := o.Local.validate(); err != nil {
			return err
		}
	}
	return o.validateToken()
}

func (o Options) validateToken() error {
	const most = 256
	if len(o.Token) > most {
		return fmt.Errorf("quotad: Options.Token is longer than %d bytes; `quotad keys token` makes one",
			most)
	}
	for _, c := range []byte(o.Token) {
		if c <= ' ' || c > '~' {
			return errors.New("quotad: Options.Token has a space, a line end or another character " +
				"that no token has; remove it where the token is read")
		}
	}
	return nil
}

// withDefaults returns the options with a value for each that may be left out.
func (o Options) withDefaults() Options {
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	return o
}

// bearer sends a token with each call.
type bearer struct {
	token  string
	secure bool
}

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (b bearer) RequireTransportSecurity() bool { return b.secure }
