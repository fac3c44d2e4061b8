//go:build !race

package lab

import (
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/store"
)

// TestDriven: a store works on a driven server at any time, even years from the wall clock. What
// the server remembers expires by its clock alone, whether that is set forward or back.
func TestDriven(t *testing.T) {
	for _, year := range []int{1971, 2026, 2200} {
		now := time.Date(year, 6, 1, 0, 0, 0, 0, time.UTC)
		d, err := StartDriven(now, "a")
		suite.Must(t, err)
		t.Cleanup(func() { _ = d.Close() })
		set := func(to time.Time) {
			now = to
			d.Set(now)
		}
		s, err := d.Connect(func() time.Time { return now })
		suite.Must(t, err)
		t.Cleanup(func() { _ = s.Close() })
		before := mustOpen(t, s, first)
		c := charge("k", 10, 1)
		c.Once = store.OnceKey(store.Whole, "request")
		ask := func() algorithms.Decided { return decide(t, s, c) }

		begun := now
		if d := ask(); d.Now != quantity.StoreTime(now.UnixMicro()) || d.Repeated ||
			admitted(d) != 1 {
			t.Errorf("%d: at %v: %+v", year, now, d)
		}
		const remembered = algorithms.RememberedFor * time.Millisecond
		set(begun.Add(remembered - time.Millisecond))
		set(begun.AddDate(-1, 0, 0)) // no key lives shorter because of it
		set(begun.Add(remembered - time.Microsecond))
		if !ask().Repeated {
			t.Errorf("%d: a request is forgotten too early", year)
		}
		set(begun.Add(-time.Hour)) // nor longer
		set(begun.Add(remembered))
		if ask().Repeated {
			t.Errorf("%d: a request is remembered too long", year)
		}
		set(begun.AddDate(-1, 0, 0))
		if held := ask(); held.Now != quantity.StoreTime(begun.Add(remembered).UnixMicro()) {
			t.Errorf("%d: a clock set back takes the store's time back to %d", year, held.Now)
		}
		set(begun.AddDate(20, 0, 0))
		if later := ask(); later.Now != quantity.StoreTime(now.UnixMicro()) || later.Repeated {
			t.Errorf("%d: twenty years on: %+v", year, later)
		}
		d.Restart()
		if ask().Status != algorithms.StatusUnknown {
			t.Errorf("%d: a server that lost everything answers", year)
		}
		if again := mustOpen(t, s, store.Opening{Region: "eu", Epoch: epoch,
			LastGeneration: before.Generation}); !again.Lost || s.Data()[0] != "a.1" {
			t.Errorf("%d: opened %+v on the data of %v", year, again, s.Data())
		}
	}
}
