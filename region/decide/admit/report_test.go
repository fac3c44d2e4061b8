package admit

import (
	"errors"
	"testing"
	"time"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
)

// reports charges what a use of account a cost.
func (n *running) reports(t *testing.T, units quantity.Units, id string) Decision {
	t.Helper()
	q := cost("a", units)
	q.ID = id
	d, err := n.Report(t.Context(), q)
	suite.Must(t, err)
	return d
}

// asks returns what account a is answered that asks before a use.
func (n *running) asks(t *testing.T) Decision {
	t.Helper()
	q := request("a")
	q.Question = true
	d, err := n.Check(t.Context(), q)
	suite.Must(t, err)
	return d
}

const tokens = "name: tokens, limit: 100, window: 1h, charge: always"

// A cost is charged whole, whatever is left; the answer denies as long as it is owed, and says when a
// unit fits again.
func TestReport(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, tokens), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		if d := n.reports(t, 90, ""); !d.Allowed || d.Owed != 0 || d.Remaining != 10 {
			t.Errorf("90 of 100: %+v", d)
		}
		if d := n.asks(t); !d.Allowed {
			t.Errorf("10 are left: %+v", d)
		}
		d := n.reports(t, 250, "")
		if d.Allowed || d.Owed != 240 || d.Reason != OverLimit || d.Remaining != 0 || d.RetryAfter != time.Hour {
			t.Errorf("250 more: %+v", d)
		}
		if d := n.asks(t); d.Allowed || d.RetryAfter != time.Hour {
			t.Errorf("240 are owed: %+v", d)
		}
		if used := n.used(t, "tokens", request("a")); used != 340 {
			t.Errorf("%d used, want 340", used)
		}
		if units := n.UnitsByLimit()["tokens"]; units.Admitted != 100 || units.Denied != 0 {
			t.Errorf("counted %+v", units)
		}
		time.Sleep(time.Hour)
		if d := n.asks(t); !d.Allowed {
			t.Errorf("in the next window: %+v", d)
		}
	})
}

// Who sent a report and had no answer sends it again with its id: it is charged once, also if it was owed.
// A check of the same id is another request.
func TestReportOnce(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, tokens), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		for again := range 3 {
			if d := n.reports(t, 130, "x"); d.Owed != 30 || d.Repeated != (again > 0) || d.Allowed {
				t.Errorf("%+v", d)
			}
		}
		if units := n.UnitsByLimit()["tokens"]; units.Admitted != 100 {
			t.Errorf("counted %+v", units)
		}
		if used := n.used(t, "tokens", request("a")); used != 130 {
			t.Errorf("%d used, want 130", used)
		}
	})
	started(t, documents.Parse(t, 1, alone, tokens), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		q := cost("a", 30)
		q.ID = "x"
		first, err := n.Check(t.Context(), q)
		if d := n.reports(t, 30, "x"); err != nil || first.Repeated || d.Repeated {
			t.Errorf("check %+v, report %+v, %v", first, d, err)
		}
	})
}

// Other limits are charged if the cost fits all of them, whatever the limits say that are charged always;
// and these are charged whatever the others say.
func TestReportAndOtherLimits(t *testing.T) {
	d := documents.Parse(t, 1, alone, tokens, "name: requests, limit: 50, window: 1h")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		for _, step := range []struct {
			cost           quantity.Units
			allowed        bool
			owed           quantity.Units
			tokens, others quantity.Units
		}{
			{40, true, 0, 40, 40},
			{40, false, 0, 80, 40},   // the other limit has no room for it
			{10, true, 0, 90, 50},    // both
			{30, false, 20, 120, 50}, // neither
		} {
			d := n.reports(t, step.cost, "")
			used, others := n.used(t, "tokens", request("a")), n.used(t, "requests", request("a"))
			if d.Allowed != step.allowed || d.Owed != step.owed || used != step.tokens || others != step.others {
				t.Errorf("%d: %+v, used %d and %d", step.cost, d, used, others)
			}
			if len(d.Limits) != 2 || d.Limits[0].Limit != "tokens" || d.Limits[0].Owed != step.owed ||
				d.Limits[1].Limit != "requests" || d.Limits[1].Owed != 0 {
				t.Errorf("%d: limits %+v", step.cost, d.Limits)
			}
		}
	})
}

// A report that meets no limit that is charged always is refused, and so is one with a wrong cost.
func TestReportIsRefused(t *testing.T) {
	started(t, documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m"), []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n := c.running["us/n1"]
		for field, q := range map[string]Request{"descriptors": request("a"), "cost": cost("a", 0)} {
			var wrong *invalid.Field
			if d, err := n.Report(t.Context(), q); !errors.As(err, &wrong) || wrong.Name != field {
				t.Errorf("%+v, %v", d, err)
			}
		}
		q := request("a")
		q.Question, q.ID = true, "x"
		var wrong *invalid.Field
		if d, err := n.Check(t.Context(), q); !errors.As(err, &wrong) || wrong.Name != "question" {
			t.Errorf("a question with an id: %+v, %v", d, err)
		}
	})
}

// Without the store a charge is kept, whatever on_store_failure says, and the store is charged with it
// when it answers again. Meanwhile it counts in the node's part.
func TestReportWithoutTheStore(t *testing.T) {
	for _, failure := range []string{"local", "deny", "allow"} {
		for _, kind := range []algorithms.Kind{algorithms.FixedWindow, algorithms.SlidingWindowCounter, algorithms.SlidingWindowLog,
			algorithms.TokenBucket} {
			t.Run(failure+" "+string(kind), func(t *testing.T) {
				d := documents.Parse(t, 1, alone, "name: tokens, limit: 100, window: 1h, charge: always, lending_limit: 0.5, on_store_failure: "+
					failure+", algorithm: "+string(kind))
				started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
					n := c.running["us/n1"]
					n.reports(t, 10, "")
					c.setDown(true)
					if d := n.reports(t, 500, ""); d.Reason != StoreFailureLocal || d.Allowed || d.Owed == 0 {
						t.Errorf("without the store: %+v", d)
					}
					if d := n.asks(t); d.Allowed != (failure == "allow") {
						t.Errorf("the node's part is used up: %+v", d)
					}
					c.setDown(false)
					for range 20 {
						time.Sleep(time.Second)
						n.Local().Book(t.Context())
					}
					if used := n.used(t, "tokens", request("a")); used != 510 {
						t.Errorf("%d used, want 510", used)
					}
				})
			})
		}
	}
}

// A settled request costs the store nothing once it is settled no more: after one minute and after two of
// settling, with settle_within: 10s, it has the same keys. TestSettledRequestsCostNothingInTheEnd prints how
// many.
func TestSettledRequestsCostNothingInTheEnd(t *testing.T) {
	suite.Long(t)
	const perSecond = 1000
	d := documents.Parse(t, 1, alone, "name: tokens, limit: 1000000000, window: 1h, settle_within: 10s")
	started(t, d, []string{"us/n1"}, func(t *testing.T, c *cluster) {
		n, operator := c.running["us/n1"], fixtures.Operator(t, c.server)
		keys := func() int64 {
			all, err := operator.DBSize(t.Context()).Result()
			suite.Must(t, err)
			return all
		}
		var after []int64
		for second := range 120 {
			for range perSecond {
				receipt := n.charged(t, cost("a", 40))
				if _, err := n.receipts.Settle(t.Context(), receipt, 7); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
			if second == 59 || second == 119 {
				after = append(after, keys())
			}
		}
		t.Logf("%d settled a second: %d keys after 60 s, %d after 120 s", perSecond, after[0], after[1])
		if most := int64(12*perSecond + 20); after[0] > most || after[1] > most || after[0] < int64(9*perSecond) {
			t.Errorf("keys %v, want about %d", after, 10*perSecond)
		}
	})
}
