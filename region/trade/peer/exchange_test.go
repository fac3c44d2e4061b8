package peer

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/quotad/quotad/allocator/exchange"
)

// TestExchange: a message and its reply arrive whole.
func TestExchange(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		open := []exchange.Acknowledged{{Version: 1, Digest: [32]byte{1}, At: 5},
			{Version: 1 << 51, Digest: [32]byte{31: 1}}}
		sent := exchange.Message{From: "eu", Node: "eu-1", Generation: 1<<64 - 1, Documents: open,
			Asks: []exchange.Ask{{Bucket: "a\xff\x00", Agreed: 1<<64 - 1, Cell: -1, Returned: 2, Lent: 3, Burst: 4},
				{Bucket: "b", Lent: 5}}}
		reply := exchange.Reply{From: "us", Generation: 7, ForGeneration: 1<<64 - 1, Documents: open,
			Grants: []exchange.Grant{{Cell: -1, Returned: 1, Lent: 3, Spare: 9, Retry: 250_000,
				Burst: 4, SpareBurst: 8}, {Refusal: exchange.RefusedFinished}}}
		p.serve("us", func(_ context.Context, m exchange.Message) (exchange.Reply, error) {
			if !reflect.DeepEqual(m, sent) {
				t.Errorf("heard %+v\nsaid  %+v", m, sent)
			}
			return reply, nil
		})
		p.client.SetNodes("us", []string{at("us")})
		got, err := p.client.Exchange(t.Context(), "us", sent)
		if err != nil || !reflect.DeepEqual(got, reply) {
			t.Errorf("got  %+v, %v\nwant %+v", got, err, reply)
		}
	})
}

// TestMostAsks: a message of more asks than are served is refused before anybody looks at it.
func TestMostAsks(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		heard := 0
		p.serve("us", func(_ context.Context, m exchange.Message) (exchange.Reply, error) {
			heard++
			return exchange.Reply{Grants: make([]exchange.Grant, len(m.Asks))}, nil
		})
		p.client.SetNodes("us", []string{at("us")})
		ask := exchange.Ask{Bucket: strings.Repeat("k", 4096), Cell: 1 << 50, Lent: 1 << 50}
		asks := func(n int) exchange.Message {
			m := exchange.Message{Asks: make([]exchange.Ask, n)}
			for i := range m.Asks {
				m.Asks[i] = ask
			}
			return m
		}
		r, err := p.client.Exchange(t.Context(), "us", asks(exchange.MaxAsks))
		if err != nil || len(r.Grants) != exchange.MaxAsks {
			t.Errorf("%d grants, %v", len(r.Grants), err)
		}
		_, err = p.client.Exchange(t.Context(), "us", asks(exchange.MaxAsks+1))
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(),
			fmt.Sprintf("at most %d", exchange.MaxAsks)) {
			t.Errorf("one ask too many: %v", err)
		}
		if heard != 1 {
			t.Errorf("%d messages were handled, want 1", heard)
		}
	})
}

// TestHandlerError: what a handler cannot do is an error at the caller, with its words and the
// node's address.
func TestHandlerError(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us", func(context.Context, exchange.Message) (exchange.Reply, error) {
			return exchange.Reply{From: "us"}, errors.New("the queue is full")
		})
		p.client.SetNodes("us", []string{at("us")})
		r, err := p.client.Exchange(t.Context(), "us", exchange.Message{})
		if status.Code(err) != codes.Unavailable || !reflect.DeepEqual(r, exchange.Reply{}) {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, words := range []string{"the queue is full", "region us", at("us")} {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not say %q", err, words)
			}
		}
	})
}

// TestDeadlineReachesTheHandler: a caller that gives up frees the handler, too.
func TestDeadlineReachesTheHandler(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		ended := make(chan error, 1)
		p.serve("us", func(ctx context.Context, _ exchange.Message) (exchange.Reply, error) {
			<-ctx.Done()
			ended <- ctx.Err()
			return exchange.Reply{}, ctx.Err()
		})
		p.client.SetNodes("us", []string{at("us")})
		begin := time.Now()
		if _, err := p.call(300 * time.Millisecond); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("the call: %v", err)
		}
		if err := <-ended; err == nil {
			t.Error("the handler's context did not end")
		}
		if took := time.Since(begin); took > 300*time.Millisecond+2*oneWay {
			t.Errorf("the handler was held for %v", took)
		}
	})
}

// TestCloseEndsCalls: Close ends the calls under way and the goroutines of both sides; a closed
// client calls nobody.
func TestCloseEndsCalls(t *testing.T) {
	inPlace(t, func(t *testing.T, p *place) {
		p.serve("us", func(ctx context.Context, _ exchange.Message) (exchange.Reply, error) {
			<-ctx.Done()
			return exchange.Reply{}, ctx.Err()
		})
		p.client.SetNodes("us", []string{at("us")})
		ended := make(chan error, 1)
		go func() {
			_, err := p.call(time.Hour)
			ended <- err
		}()
		time.Sleep(time.Second)
		for range 2 {
			if err := p.client.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := <-ended; err == nil {
			t.Error("a call was answered by nobody")
		}
		dials := p.net.Stats("eu", "us").Dials
		p.client.SetNodes("us", []string{at("us")})
		if _, err := p.call(time.Second); !errors.Is(err, ErrClosed) {
			t.Errorf("a call of a closed client: %v, want %v", err, ErrClosed)
		}
		synctest.Wait()
		if n := p.net.Stats("eu", "us").Dials - dials; n != 0 {
			t.Errorf("a closed client dialled %d times", n)
		}
	})
}
