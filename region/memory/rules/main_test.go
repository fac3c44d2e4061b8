package rules_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/region/memory/rules"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hereAndThere is two regions, of which "here" has 40 % of everything.
var hereAndThere = []string{"here: {weight: 40}", "there: {weight: 60}"}

var threeRegions = []string{"us: {weight: 40}", "eu: {weight: 40}", "ap: {weight: 20}"}

// rulesOf returns the rules of a document in a region.
func rulesOf(t testing.TB, d *policy.Document, region string) *rules.Rules {
	t.Helper()
	return rules.New(barrier.Only(d, region), nil)
}

// account are the descriptors of an account.
func account(name string) map[string]string { return map[string]string{"account": name} }

// of is what the limits of an account's requests in domain api are matched by.
func of(name string) (domain string, descriptors map[string]string) { return "api", account(name) }
