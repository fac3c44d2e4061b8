package rules_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/memory/rules"
)

func TestRulesOfARegionThatIsNotInTheDocument(t *testing.T) {
	d := documents.Parse(t, 7, threeRegions, "name: minute, limit: 100, window: 1m")
	for _, name := range []string{"", "mars", "US", "us "} {
		r := rulesOf(t, d, name)
		err := r.Serves()
		if err == nil || !strings.Contains(err.Error(), d.Epoch().String()) ||
			!strings.Contains(err.Error(), "stop it, or add it") {
			t.Errorf("region %q: %v", name, err)
		}
		if a := r.Match(of("a"))[0]; a.Entitlement() != 0 || len(r.Peers) != 3 {
			t.Errorf("region %q is entitled to %d, peers %v", name, a.Entitlement(), r.Peers)
		}
	}
	if r := rulesOf(t, d, "ap"); strings.Join(r.Peers, " ") != "eu us" {
		t.Errorf("peers of ap: %v", r.Peers)
	}
}

// Entitlements are the same at every region, add up to the limit, and their remainders move from
// key to key.
func TestEntitlementsRotateAndAddUp(t *testing.T) {
	for _, limit := range []quantity.Units{6, 7, 8, 10, 100, 101, 1 << 51} {
		d := documents.Parse(t, 1, []string{"a: {weight: 1}", "b: {weight: 1}", "c: {weight: 1}"},
			fmt.Sprintf("name: minute, window: 1m, limit: %d", limit))
		at := map[string]*rules.Rules{}
		for _, region := range d.Regions {
			at[region.Name] = rulesOf(t, d, region.Name)
		}
		more := map[string]int{} // how often a region had a unit of the remainder
		suite.Check(t, func(r *rapid.T) {
			domain, descriptors := of(rapid.String().Draw(r, "account"))
			var sum quantity.Units
			for name, its := range at {
				a := its.Match(domain, descriptors)[0]
				f := a.Target.Terms.Entitlement
				if f != a.Bucket.Entitlements[name] ||
					f != at["a"].Match(domain, descriptors)[0].Bucket.Entitlements[name] {
					r.Fatalf("region %s: regions differ over its entitlement", name)
				}
				if f < limit/3 || f > limit/3+1 {
					r.Fatalf("region %s: entitlement %d of %d", name, f, limit)
				}
				more[name] += int(f - limit/3)
				sum += f
			}
			if sum != limit {
				r.Fatalf("entitlements add up to %d, the limit is %d", sum, limit)
			}
		})
		for name := range at {
			if limit%3 != 0 && more[name] == 0 {
				t.Errorf("limit %d: region %s never had a unit of the remainder", limit, name)
			}
		}
	}
}

// Keys are equal only if their bytes are, and a key's parts do not run into each other.
func TestBucketsOfAwkwardKeys(t *testing.T) {
	r := rulesOf(t, documents.Parse(t, 1, hereAndThere,
		"name: pair, key: [account, address], limit: 100, window: 1m"), "here")
	values := []string{"", "a", "a_b", "b_c", "c", "a:b", "}{", "{}", "\x00", "\r\n", "*",
		"\xff\xfe", "\xff", "\ufffd", "é", "e\u0301",
		"\u202e", "1:a,", ",1:a", strings.Repeat("v", 256)}
	seen := map[string][2]string{}
	for _, account := range values {
		for _, address := range values {
			a := r.Match("api", map[string]string{"account": account, "address": address})[0]
			if other, known := seen[a.Target.Key]; known {
				t.Fatalf("%q and %q share a bucket", other, [2]string{account, address})
			}
			seen[a.Target.Key] = [2]string{account, address}
			if b := r.Find(a.Bucket.ID); b == nil || b.ID != a.Bucket.ID {
				t.Errorf("%q %q: a peer's id of the bucket is not found", account, address)
			}
		}
	}
}

func TestFindRefusesWhatTheDocumentDoesNotHave(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: minute, limit: 100, window: 1m",
		"name: minute, limit: 500, window: 1m, match: {plan: pro}",
		"name: minute, domain: other, limit: 7, window: 1m")
	r := rulesOf(t, d, "us")
	good := policy.BucketRef{Domain: "api", Name: "minute", Algorithm: policy.FixedWindow,
		Window: d.Limits[0].Window,
		Key:    []policy.KeyValue{{Name: "account", Value: "a"}}}
	with := func(change func(*policy.BucketRef)) string {
		ref := good
		ref.Key = append([]policy.KeyValue{}, good.Key...)
		change(&ref)
		return string(ref.ID())
	}
	on := func(match ...policy.Condition) string {
		return with(func(b *policy.BucketRef) { b.Match = match })
	}
	pro := policy.Condition{Name: "plan", Value: "pro"}
	for id, limit := range map[string]quantity.Units{string(good.ID()): 100, on(pro): 500,
		with(func(b *policy.BucketRef) { b.Domain = "other" }): 7} {
		b := r.Find(id)
		if b == nil || b.ID != id || b.Limit != limit || b.Epoch != d.Epoch().String() ||
			b.Window != 60_000_000 || b.Entitlements["us"] != (limit*2+2)/5 {
			t.Errorf("limit %d: %+v", limit, b)
		}
	}
	id := string(good.ID())
	for name, forged := range map[string]string{
		"another domain":    with(func(b *policy.BucketRef) { b.Domain = "web" }),
		"another name":      with(func(b *policy.BucketRef) { b.Name = "hour" }),
		"another algorithm": with(func(b *policy.BucketRef) { b.Algorithm = policy.TokenBucket }),
		"another window":    with(func(b *policy.BucketRef) { b.Window *= 2 }),
		"another key name":  with(func(b *policy.BucketRef) { b.Key[0].Name = "address" }),
		"a longer key": with(func(b *policy.BucketRef) {
			b.Key = append(b.Key, policy.KeyValue{Name: "address"})
		}),
		"another condition":   on(policy.Condition{Name: "plan", Value: "free"}),
		"a condition more":    on(pro, policy.Condition{Name: "tier", Value: "gold"}),
		"a condition twice":   on(pro, pro),
		"no key":              with(func(b *policy.BucketRef) { b.Key = nil }),
		"nothing":             "",
		"a part of it":        id[:len(id)-1],
		"something behind it": id + "1:x,",
		"twice":               id + id,
		"no netstrings":       "minute",
		"a huge length":       "99999999999999999999:api,",
		"the store's token":   "token",
	} {
		if b := r.Find(forged); b != nil {
			t.Errorf("%s: found %+v", name, b)
		}
	}
}

func FuzzFind(f *testing.F) {
	d := documents.Parse(f, 1, threeRegions, "name: minute, limit: 100, window: 1m")
	r := rulesOf(f, d, "us")
	f.Add(string(d.Limits[0].Bucket(map[string]string{"account": "a"})))
	f.Add("")
	f.Fuzz(func(t *testing.T, id string) {
		b := r.Find(id)
		if b == nil {
			return
		}
		ref, err := policy.ParseBucketID(policy.BucketID(id))
		if err != nil || b.ID != id || b.Limit != 100 || ref.Name != "minute" {
			t.Errorf("find(%q) = %+v", id, b)
		}
	})
}

// TestHomeMode: a limit too small to be split belongs to one region for each key, to each of them
// for some.
func TestHomeMode(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions,
		"name: minute, limit: 5, window: 1m, borrowing_limit: 1")
	homes := map[string]bool{}
	for account := range 64 {
		b := rulesOf(t, d, "ap").Match(of(strconv.Itoa(account)))[0].Bucket
		if b.Lending != allocator.PPM || b.Borrowing >= 0 {
			t.Fatalf("lending %d, borrowing %d: the others could never have it all", b.Lending,
				b.Borrowing)
		}
		for name, units := range b.Entitlements {
			switch units {
			case 5:
				homes[name] = true
			case 0:
			default:
				t.Fatalf("account %d: region %s is entitled to %d", account, name, units)
			}
		}
	}
	if len(homes) != 3 {
		t.Errorf("homes of 64 keys: %v, want all three regions", homes)
	}
}

func TestMatchAndLocate(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions,
		"name: minute, limit: 100, window: 1m, lending_limit: 0.5, borrowing_limit: 2",
		"name: watch, limit: 10, window: 1s, shadow: true",
		"name: pair, key: [account, address], limit: 10, window: 1s")
	r := rulesOf(t, d, "ap")
	all := r.Match(of("a"))
	if len(all) != 2 || all[0].Limit.Name != "minute" || all[1].Limit.Name != "watch" ||
		all[0].Target.Shadow || !all[1].Target.Shadow {
		t.Fatalf("matched %+v", all)
	}
	want := algorithms.Terms{Kind: algorithms.FixedWindow, Window: 60_000_000, Cell: 60_000_000,
		Tick: 1, Entitlement: 20}
	if b := all[0].Bucket; all[0].Target.Terms != want || b.Lending != 500_000 ||
		b.Borrowing != 2_000_000 || b.Limit != 100 {
		t.Errorf("terms %+v of %+v", all[0].Target.Terms, b)
	}
	if all[1].Bucket.Borrowing >= 0 {
		t.Errorf("a limit without borrowing_limit is bound by %d", all[1].Bucket.Borrowing)
	}
	l, b, err := r.Locate("watch", "api", account("a"))
	if err != nil || l != all[1].Limit || b.ID != all[1].Bucket.ID {
		t.Errorf("located %v, %v, %v", l, b, err)
	}
	for _, name := range []string{"pair", "none", ""} {
		if _, _, err := r.Locate(name, "api", account("a")); !errors.Is(err,
			rules.ErrNoSuchBucket) {
			t.Errorf("limit %q: %v", name, err)
		}
	}
}

// TestWhatMayHaveBeenLentUnderAnyDocument: while documents are open, a loss of the store counts as
// lent what any of them allowed, and all else is the least of what they give.
func TestWhatMayHaveBeenLentUnderAnyDocument(t *testing.T) {
	const limit = "name: minute, limit: 1000, window: 1m, "
	old := documents.Parse(t, 1, hereAndThere, limit+"weights: {here: 1, there: 1}, lending_limit: 1")
	newer := documents.Parse(t, 2, hereAndThere, limit+"weights: {here: 1, there: 4}, lending_limit: 0.5")
	r := rules.New(&barrier.View{Agenda: open(t, old, newer), Region: "here"}, nil)
	b := r.Match(of("a"))[0].Bucket
	if b.LentBefore != 500 || b.Lending != 500_000 || b.Entitlements["here"] != 200 ||
		b.Entitlements["there"] != 500 || r.Epoch != old.Epoch().String()+"+"+newer.Epoch().String() {
		t.Errorf("%+v under %s", b, r.Epoch)
	}
	if one := rules.New(barrier.Only(newer, "here"), nil).Match(of("a"))[0].Bucket; one.LentBefore != 0 ||
		one.Agreed == b.Agreed {
		t.Errorf("alone: %+v", one)
	}
}

// TestARegionThatIsNotInADocumentGetsNothing, as soon as that is open, and tells the others so.
func TestARegionThatIsNotInADocumentGetsNothing(t *testing.T) {
	const limit = "name: minute, limit: 1000, window: 1m"
	both := documents.Parse(t, 1, hereAndThere, limit)
	there := documents.Parse(t, 2, []string{"there: {weight: 1}"}, limit)
	for region, want := range map[string]quantity.Units{"here": 0, "there": 600} {
		r := rules.New(&barrier.View{Agenda: open(t, both, there), Region: region}, nil)
		if a := r.Match(of("a"))[0]; a.Entitlement() != want || len(r.Peers) != 1 {
			t.Errorf("%s is entitled to %d, want %d; peers %v", region, a.Entitlement(), want, r.Peers)
		}
		if err := r.Serves(); (err == nil) != (region == "there") {
			t.Errorf("%s: %v", region, err)
		}
	}
}

// open returns the agenda of documents that are open together.
func open(t documents.T, all ...*policy.Document) barrier.Agenda {
	t.Helper()
	a, err := barrier.Union(all...)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return a
}

// What Envoys may hold and admit comes out of the limit: the stores of all regions and all Envoys
// together have no more than its burst, and no more than its rate.
func TestEnvoysHaveAPartOfTheLimit(t *testing.T) {
	const limit, burst, most, without = 1001, 500, 101, 100
	d := documents.Parse(t, 1, threeRegions, fmt.Sprintf("name: assigned, algorithm: token_bucket, "+
		"limit: %d, window: 1s, burst: %d, assign: {max_burst: %d, no_assignment: %d}",
		limit, burst, most, without))
	var rate, tokens, envoys quantity.Units
	for _, region := range d.Regions {
		a := rulesOf(t, d, region.Name).Match(of("a"))[0]
		rate += a.Target.Terms.Entitlement
		tokens += a.Target.Terms.Burst
		envoys += a.EnvoyBurst
		if a.Bucket.Cell != 10_000_000 || !a.Bucket.Assigned || a.Bucket.Limit != limit-without {
			t.Errorf("%s: %+v", region.Name, a.Bucket)
		}
	}
	if rate != limit-without || tokens != burst-most || envoys != most {
		t.Errorf("the stores have a rate of %d and %d tokens, Envoys %d", rate, tokens, envoys)
	}
}
