//go:build proxies

package proxies

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
)

// The load on each proxy: requests a second of one address, in turn of two accounts and of none.
const (
	loadRate = 200
	loadFor  = 10 * time.Second
	inFlight = 64
)

// outcomes counts what clients saw.
type outcomes struct {
	allowed, denied, undecided, failed atomic.Int64
}

func (o *outcomes) note(a answer, err error) {
	switch {
	case err == nil && a.code == http.StatusOK && a.decided():
		o.allowed.Add(1)
	case err == nil && a.code == http.StatusTooManyRequests && a.header.Get("Retry-After") != "":
		o.denied.Add(1)
	case err == nil && a.code == http.StatusOK:
		o.undecided.Add(1)
	default:
		o.failed.Add(1)
	}
}

// load offers load, and prints what clients saw.
func (s *stage) load(t *testing.T, name string) {
	c := s.client("127.0.0.7")
	keys := []string{"key-of-acme", "key-of-globex", ""}
	var o outcomes
	g, err := load.NewGenerator(load.Config{Rate: load.Rate(loadRate), MaxInFlight: inFlight,
		Do: func(ctx context.Context, r load.Request) {
			o.note(c.ask(ctx, "GET", "/load", "X-Api-Key", keys[r.Index%3]))
		}})
	suite.Must(t, err)
	ctx, stop := context.WithTimeout(t.Context(), loadFor)
	defer stop()
	suite.Must(t, g.Run(ctx))
	sent := g.Stats().Sent
	fmt.Printf("%s: %d requests in %v: %d allowed, %d denied, %d errors, "+
		"%d passed as quotad was too slow\n", name, sent, loadFor, o.allowed.Load(),
		o.denied.Load(), o.failed.Load(), o.undecided.Load())
	switch {
	case o.failed.Load() != 0:
		t.Errorf("%d errors", o.failed.Load())
	case int64(s.app.count("/load")) != o.allowed.Load()+o.undecided.Load():
		t.Errorf("%d requests arrived at the app", s.app.count("/load"))
	case o.allowed.Load() == 0 || o.denied.Load() == 0 || o.allowed.Load() > 1300:
		// 1,000 for the address in a minute, and what of it is free again in 10 s
		t.Error("that is not what the limits say")
	}
}
