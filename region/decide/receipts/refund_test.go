package receipts

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/queue"
)

// rights knows of no bucket.
type rights struct{}

func (rights) ExistsUntil(string) quantity.StoreTime              { return 0 }
func (rights) Lose(context.Context, *exchange.Bucket, error) bool { return false }

// charged charges units to an account, and returns what was asked and the receipt.
func charged(t *testing.T, s *Receipts, units quantity.Units) (w queue.Ask, receipt string) {
	t.Helper()
	r := s.config.Rules()
	w = queue.Ask{Rules: r, Applied: r.Match("api", map[string]string{"account": "a"}), Cost: units, Commit: true}
	done := s.config.Store.Decide(t.Context(), []algorithms.Decide{{Fence: algorithms.Fence{Epoch: r.Epoch}, Commit: true,
		Costs: []quantity.Units{units}, Buckets: []algorithms.LimitTarget{w.Applied[0].Target}}})[0]
	suite.Must(t, done.Err)
	a := queue.Answer{Decided: done.Value}
	if receipt = s.Give(w, a); !a.Admitted() || receipt == "" {
		t.Fatalf("%+v, receipt %q", a, receipt)
	}
	return w, receipt
}

// wantBack fails the test unless units were given back.
func wantBack(t *testing.T, got Refunded, err error, units quantity.Units, repeated bool) {
	t.Helper()
	want := RefundedCharge{Limit: "minute", Units: units}
	if units == 0 {
		want.Reason = algorithms.NoLongerWeighs.String()
	}
	if err != nil || got.Repeated != repeated || !slices.Equal(got.Charges, []RefundedCharge{want}) {
		t.Errorf("%+v, %v; want %+v, repeated %v", got, err, want, repeated)
	}
}

// TestAReceiptGivesBackOnce: all of it, or some units, and the other act gives nothing more.
func TestAReceiptGivesBackOnce(t *testing.T) {
	s, _ := sealing(t)
	_, first := charged(t, s, 3)
	_, second := charged(t, s, 5)
	got, err := s.Refund(t.Context(), first)
	wantBack(t, got, err, 3, false)
	got, err = s.GiveBack(t.Context(), first, 1)
	wantBack(t, got, err, 3, true)
	for _, wrong := range []quantity.Units{-1, 0, 6} {
		_, err := s.GiveBack(t.Context(), second, wrong)
		if field, is := errors.AsType[*invalid.Field](err); !is || field.Name != "units" {
			t.Errorf("%d units of 5: %v", wrong, err)
		}
	}
	got, err = s.GiveBack(t.Context(), second, 4)
	wantBack(t, got, err, 4, false)
	got, err = s.Refund(t.Context(), second)
	wantBack(t, got, err, 4, true)
}

// TestUnchargeGivesBackWhatIsUsed: each time anew, until nothing counts as used.
func TestUnchargeGivesBackWhatIsUsed(t *testing.T) {
	s, _ := sealing(t)
	charged(t, s, 3)
	w, _ := charged(t, s, 4)
	for _, units := range []quantity.Units{4, 3, 0} {
		got, err := s.Uncharge(t.Context(), w)
		wantBack(t, got, err, units, false)
	}
}
