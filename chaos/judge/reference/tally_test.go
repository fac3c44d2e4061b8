//go:build reference && !race

package reference

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
)

// allowed are the kinds of differences that are meant, with why.
var allowed = map[string]string{
	"quotad: " + follows: "the difference that it follows from is counted itself",
}

// olderQuota is the cause of differences that an older program has.
const olderQuota = "a limit in quota mode without room"

// meant are the causes for which the servers answer otherwise than each other though each answers
// as its model.
var meant = []struct {
	cause, why string
	is         func(peer, node *turn, place int) bool
}{
	{olderQuota, "envoyproxy/ratelimit of before July 2026 denies by none; newer ones do, and quotad as they",
		func(_, node *turn, i int) bool {
			return !*newer && node.all[i].limit != nil && node.all[i].limit.Quota &&
				node.want.Statuses[i].Code == rlsv3.RateLimitResponse_OVER_LIMIT
		}},
	{"negative hits", "envoyproxy/ratelimit charges them as others; quotad asks, unless the document has it give back",
		func(peer, _ *turn, i int) bool { return peer.request.Descriptors[i].GetIsNegativeHits() }},
	{"a question where nothing is left", "a cost of 0 asks whether a request would pass; envoyproxy/ratelimit says yes until more than the limit was charged",
		func(_, node *turn, i int) bool {
			return node.all[i].addend == 0 && node.want.Statuses[i].Code == rlsv3.RateLimitResponse_OVER_LIMIT
		}},
	{"a request asks and charges one count", "what asks goes first, so that it passes where the other order would",
		func(_, node *turn, i int) bool { return askedAndCharged(node, i) }},
	{"a denied descriptor is not charged", "what was used stays within the limit, so that the smaller costs behind a denied one pass",
		func(_, node *turn, i int) bool {
			return !*chargeAlways && node.all[i].limit != nil && node.all[i].limit.Requests > 0
		}},
}

// askedAndCharged reports whether a request asks of a descriptor's count, and charges it.
func askedAndCharged(t *turn, place int) bool {
	for _, a := range t.all {
		if own := t.all[place]; own.limit != nil && a.limit != nil && a.count == own.count && (a.addend == 0) != (own.addend == 0) {
			return true
		}
	}
	return false
}

// tally counts what became of requests.
type tally struct {
	requests, ones, alike, leftOut int
	kinds, causes                  map[string]int
	unexplained                    int // differences of both servers that no cause explains
	examples                       map[string]string
}

func newTally() *tally {
	return &tally{kinds: map[string]int{}, causes: map[string]int{}, examples: map[string]string{}}
}

// add counts the differences of an answer, and keeps the first of each kind. It reports whether
// there are none.
func (c *tally) add(who string, t *turn, kinds []string) bool {
	slices.Sort(kinds)
	for _, kind := range slices.Compact(kinds) {
		kind = who + ": " + kind
		c.kinds[kind]++
		if c.examples[kind] == "" {
			c.examples[kind] = fmt.Sprintf("request %v\ngot  %v\nwant %v\nlimits%s", t.request, t.got, t.want, limitsOf(t.all))
		}
	}
	return len(kinds) == 0
}

// limitsOf shows the limits of a request.
func limitsOf(all []*asked) (text string) {
	for _, a := range all {
		if a.limit == nil {
			text += " -"
		} else {
			text += fmt.Sprintf(" %+v", *a.limit)
		}
	}
	return text
}

// explain counts why the answers of both differ, if each is that of its model.
func (c *tally) explain(peer, node *turn) {
	seen := map[string]bool{}
	for i := range node.all {
		if i >= len(peer.got.Statuses) || i >= len(node.got.Statuses) ||
			differs(peer.got.Statuses[i], peer.want.Statuses[i]) != "" ||
			differs(node.got.Statuses[i], node.want.Statuses[i]) != "" ||
			differs(node.got.Statuses[i], peer.got.Statuses[i]) == "" {
			continue
		}
		cause := ""
		for _, m := range meant {
			if cause == "" && m.is(peer, node, i) {
				cause = m.cause
			}
		}
		if cause == "" {
			c.unexplained++
			c.examples[cause] = fmt.Sprintf("request %v\nquotad %v\nenvoyproxy/ratelimit %v\nlimits%s", node.request, node.got, peer.got, limitsOf(node.all))
		}
		seen[cause] = true
	}
	for cause := range seen {
		c.causes[cause]++
	}
}

// print prints all counts.
func (c *tally) print(d *drawing) {
	fmt.Printf("seed %d: %d configurations in %d files\n", *seed, len(d.each), len(d.texts))
	for _, why := range slices.Sorted(maps.Keys(d.refused)) {
		fmt.Printf("%9d more were drawn again, refused by the import: %s\n", d.refused[why], why)
	}
	fmt.Printf("%9d requests, %d of them with cost 1 alone\n", c.requests, c.ones)
	fmt.Printf("%9d were answered by each server as its model says, those of cost 1 alike by both\n", c.alike)
	fmt.Printf("%9d were left out, because a second ended between the two answers\n", c.leftOut)
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		mark := "NOT MEANT"
		if allowed[kind] != "" {
			mark = "meant: " + allowed[kind]
		}
		fmt.Printf("%9d %s (%s)\n", c.kinds[kind], kind, mark)
	}
	fmt.Println("requests, by why they were answered differently by both as each model says:")
	for _, m := range meant {
		fmt.Printf("%9d %s (meant: %s)\n", c.causes[m.cause], m.cause, m.why)
	}
	fmt.Printf("%9d for no reason that is known\n", c.unexplained)
}

// judge fails the test for what is not meant.
func (c *tally) judge(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(c.kinds)) {
		if allowed[kind] == "" {
			t.Errorf("%d times, %s; the first:\n%s", c.kinds[kind], kind, c.examples[kind])
		}
	}
	if c.unexplained > 0 {
		t.Errorf("%d statuses differ for no reason that is known; the last:\n%s", c.unexplained, c.examples[""])
	}
	if c.leftOut*100 >= c.requests {
		t.Errorf("%d of %d requests were left out: the machine is too busy for this test", c.leftOut, c.requests)
	}
	if c.alike == 0 {
		t.Error("not one request was answered alike")
	}
}
