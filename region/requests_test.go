package region_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/decide/receipts"
	"github.com/quotad/quotad/region/memory/store"
)

// threeRegions is three regions, of which two have 40 % each.
var threeRegions = []string{"us: {weight: 40}", "eu: {weight: 40}", "ap: {weight: 20}"}

// asked is what limits are matched by.
func asked(q admit.Request) (domain string, descriptors map[string]string) {
	return q.Domain, q.Descriptors
}

// request is one unit of an account's in domain api.
func request(account string) admit.Request {
	return admit.Request{Domain: "api", Descriptors: map[string]string{"account": account}, Cost: 1}
}

// named is a request with an id.
func named(account, id string, units quantity.Units) admit.Request {
	q := request(account)
	q.ID, q.Cost = id, units
	return q
}

// both is a request to which limits of an account and of an address apply, in two shards of a
// Cluster.
func both(units quantity.Units) admit.Request {
	return admit.Request{Domain: "api", Cost: units, Receipt: true,
		Descriptors: map[string]string{"account": "42", "address": "10.0.0.1"}}
}

// shardsOf returns how many shards a request's limits are in.
func (n *running) shardsOf(q admit.Request) int {
	all := map[store.Shard]bool{}
	for _, a := range n.tenure.Rules().Match(asked(q)) {
		all[store.ShardOf(a.Target.Key)] = true
	}
	return len(all)
}

// refusal says how a receipt was refused. The error must be one on which a caller can act.
func refusal(t testing.TB, err error) string {
	t.Helper()
	var field *invalid.Field
	switch {
	case errors.As(err, &field) && field.Name == "receipt":
		return "field"
	case errors.Is(err, receipts.ErrRefused):
		return "receipt"
	}
	t.Errorf("refused with %v", err)
	return ""
}

// check makes a request that must be decided.
func (n *running) check(t *testing.T, q admit.Request) admit.Decision {
	t.Helper()
	d, err := n.Check(t.Context(), q)
	if err != nil {
		t.Fatalf("%s: %v", n.name, err)
	}
	return d
}

// drain makes requests of one unit until one is denied, and returns how many were admitted and the
// denial.
func (n *running) drain(t *testing.T, q admit.Request, most int) (admitted int,
	last admit.Decision) {
	t.Helper()
	for range most {
		if last = n.check(t, q); !last.Allowed {
			return admitted, last
		}
		admitted++
	}
	t.Fatalf("%s: all of %d requests were admitted", n.name, most)
	return 0, last
}

// usesUp makes requests for an account until one is denied, and returns how many were admitted.
func (n *running) usesUp(t *testing.T, account string) (admitted int) {
	t.Helper()
	for n.check(t, request(account)).Allowed {
		admitted++
	}
	return admitted
}

// admitsNothing asks for an account once a second for so long, and fails the test if a request is
// admitted. It returns the last answer.
func (n *running) admitsNothing(t *testing.T, account string, seconds int) (last admit.Decision) {
	t.Helper()
	for i := range seconds {
		if last = n.check(t, request(account)); last.Allowed {
			t.Fatalf("%s, after %d s: what was used of %s is admitted again: %+v", n.name, i, account, last)
		}
		time.Sleep(time.Second)
	}
	return last
}

// decides waits until a node answers requests of each account for a reason, such as WithinLimit.
func (c *cluster) decides(n *running, within time.Duration, reason admit.Reason, accounts ...string) {
	c.t.Helper()
	for _, account := range accounts {
		c.within(within, n.name+" to decide "+account, func() bool {
			return n.check(c.t, request(account)).Reason == reason
		})
	}
}

// load makes units of demand every 10 ms for a while and returns what was admitted, by cell.
func (n *running) load(t *testing.T, q admit.Request, units int,
	d time.Duration) map[int64]quantity.Units {
	t.Helper()
	admitted := map[int64]quantity.Units{}
	for end := time.Now().Add(d); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		for range units {
			if d := n.check(t, q); d.Allowed {
				admitted[int64(d.Cell)] += q.Cost
			}
		}
	}
	return admitted
}

// loadAll has all nodes make a unit of demand every 10 ms for a while, and returns what was admitted.
func (c *cluster) loadAll(q admit.Request, d time.Duration) (admitted quantity.Units) {
	var loads sync.WaitGroup
	var mu sync.Mutex
	for _, n := range c.running {
		loads.Go(func() {
			units := sum(n.load(c.t, q, 1, d))
			mu.Lock()
			defer mu.Unlock()
			admitted += units
		})
	}
	loads.Wait()
	return admitted
}

// counter reads one of the node's running totals.
func (n *running) counter(t *testing.T, name string) quantity.Units {
	t.Helper()
	for _, c := range n.Status().Counters() {
		if c.Name == name {
			return quantity.Units(c.Value)
		}
	}
	t.Fatalf("no counter %q", name)
	return 0
}
