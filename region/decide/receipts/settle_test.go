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

// wantSettled fails the test unless a receipt was settled so.
func wantSettled(t *testing.T, got Settled, err error, want Settled) {
	t.Helper()
	for i := range want.Charges {
		want.Charges[i].Limit = "minute"
	}
	if err != nil || got.Repeated != want.Repeated || got.Used != want.Used || !slices.Equal(got.Charges, want.Charges) {
		t.Errorf("%+v, %v; want %+v", got, err, want)
	}
}

func back(units quantity.Units) []SettledCharge { return []SettledCharge{{Back: units}} }

// TestTheFirstUseStands: what was not used is given back, what was used beyond is charged, and a second call
// has the same answer, whatever it says.
func TestTheFirstUseStands(t *testing.T) {
	s, _ := sealing(t)
	for _, tc := range []struct {
		cost, used quantity.Units
		want       []SettledCharge
	}{
		{3, 0, back(3)},
		{5, 1, back(4)},
		{5, 5, []SettledCharge{{}}},
		{5, 20, []SettledCharge{{Charged: 15}}},           // 26 of 40 are used then
		{9, 39, []SettledCharge{{Charged: 30, Owed: 25}}}, // 35 were used
	} {
		_, receipt := charged(t, s, tc.cost)
		got, err := s.Settle(t.Context(), receipt, tc.used)
		wantSettled(t, got, err, Settled{Charges: tc.want, Used: tc.used})
		for _, again := range []quantity.Units{tc.used, 0, 1000} {
			got, err := s.Settle(t.Context(), receipt, again)
			wantSettled(t, got, err, Settled{Charges: tc.want, Used: tc.used, Repeated: true})
		}
	}
	_, receipt := sealing(t)
	for _, wrong := range []quantity.Units{-1, MaxUsed + 1} {
		_, err := s.Settle(t.Context(), given(t, s, receipt), wrong)
		if field, is := errors.AsType[*invalid.Field](err); !is || field.Name != "used" {
			t.Errorf("%d units: %v", wrong, err)
		}
	}
}

// TestSettledTooLate: what is not settled within the time that its limit says counts as used.
func TestSettledTooLate(t *testing.T) {
	for _, used := range []quantity.Units{0, 3, 99} {
		s, r := sealing(t)
		r.AtUs = int64(now()) - 10*60*1_000_000 // ten minutes, as settle_within is by default
		got, err := s.Settle(t.Context(), given(t, s, r), used)
		wantSettled(t, got, err, Settled{Used: used, Charges: []SettledCharge{{Reason: algorithms.SettledLate.String()}}})
	}
}

// TestUnchargeGivesBackWhatIsUsed: each time anew, until nothing counts as used.
func TestUnchargeGivesBackWhatIsUsed(t *testing.T) {
	s, _ := sealing(t)
	charged(t, s, 3)
	w, _ := charged(t, s, 4)
	for _, units := range []quantity.Units{4, 3} {
		got, err := s.Uncharge(t.Context(), w)
		wantSettled(t, got, err, Settled{Charges: back(units)})
	}
	got, err := s.Uncharge(t.Context(), w)
	wantSettled(t, got, err, Settled{Charges: []SettledCharge{{Reason: algorithms.NoLongerWeighs.String()}}})
}
