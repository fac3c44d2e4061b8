package region_test

import (
	"errors"
	"testing"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
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
	var field *admit.FieldError
	switch {
	case errors.As(err, &field) && field.Field == "receipt":
		return "field"
	case errors.Is(err, admit.ErrReceipt):
		return "receipt"
	}
	t.Errorf("refused with %v", err)
	return ""
}
