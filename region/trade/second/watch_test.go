package second

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
)

// standing is a tenure that notes whether it was stopped.
type standing struct{ why *tenure.Stopped }

func (s *standing) Stop(why tenure.Stopped)  { s.why = &why }
func (s *standing) GoOn()                    { s.why = nil }
func (s *standing) Stopped() *tenure.Stopped { return s.why }

// TestAStartWaitsForSlowAnswers: a node starts beside another that decides with an older store. On
// busy machines the other answers late, or the node's own store does not confirm itself at once.
// Before it serves, the node has stopped.
func TestAStartWaitsForSlowAnswers(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers time.Duration // how long the other node takes to answer
		refused int           // how often the node's own store does not confirm itself
		unsure  int           // how often the other's store does not confirm itself to the other
		stops   bool
		lasts   time.Duration
	}{
		{"at once", 0, 0, 0, true, 0},
		{"late", 2 * time.Second, 0, 0, true, 2 * time.Second},
		{"own store late", 0, 3, 0, true, 3 * startPoll},
		{"the other's store late", 0, 0, 3, true, 3 * startPoll},
		{"both stores late", 0, 3, 3, true, 6 * startPoll},
		{"never", time.Hour, 0, 0, false, startPatience},
		{"own store never", 0, 1 << 30, 0, false, startPatience},
		{"the other's store never", 0, 0, 1 << 30, false, startPatience},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s, refused, unsure := &standing{}, 0, 0
				w := New(Config{Self: "us/n1", Tenure: s, Log: slog.New(slog.DiscardHandler),
					Own: func() store.Origin { return mine },
					Verify: func(context.Context) bool {
						refused++
						return refused > c.refused
					},
					Known: func() uint64 { return mine.Generation },
					Mates: func(ctx context.Context, _ *store.Confirmation) []peer.StoreAnswer {
						select {
						case <-time.After(c.answers):
							if unsure++; unsure <= c.unsure {
								return says(older, peer.StoreUnsure)
							}
							return says(older, peer.StoreDecides)
						case <-ctx.Done():
							return nil
						}
					},
					Hearsay: func() []peer.StoreAnswer { return nil },
					Tell:    func() {}})
				began := time.Now()
				w.AskFirst(t.Context())
				if took := time.Since(began); took != c.lasts || (s.why != nil) != c.stops {
					t.Errorf("after %v: stopped %v; want after %v: %v", took, s.why != nil, c.lasts,
						c.stops)
				}
			})
		})
	}
}
