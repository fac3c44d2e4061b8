package policy

import (
	"fmt"
	"strings"
	"testing"
)

// crowdDocument has limits that apply to crowdRequest and, between them, others that do not. Those
// lack a descriptor of their key, a descriptor of their conditions or the value that one must have.
func crowdDocument(matching, others int) string {
	var b strings.Builder
	b.WriteString("version: 1\nregions: {eu: {weight: 1}}\nlimits:\n")
	entry := func(name string, n int, applies string) {
		fmt.Fprintf(&b, "- {name: %s%d,domain: d,%s,algorithm: fixed_window,limit: 1,window: 1s}\n",
			name, n, applies)
	}
	for i := range others {
		switch i % 4 {
		case 0:
			entry("v", i, fmt.Sprintf("key: [id],match: {url: /%d}", i))
		case 1:
			entry("k", i, fmt.Sprintf("key: [id,k%d]", i))
		case 2:
			entry("p", i, fmt.Sprintf("key: [k%d,l%d],match: {plan: pro}", i%29, i%31))
		case 3:
			entry("t", 0, fmt.Sprintf("key: [id],match: {id: t%d,plan: pro}", i))
		}
		for n := i * matching / others; n < (i+1)*matching/others; n++ {
			entry("is", n, "key: [id]"+[]string{"", ",match: {url: /}", ",match: {plan: pro}"}[n%3])
		}
	}
	return b.String()
}

var crowdRequest = map[string]string{"id": "42", "address": "::1", "url": "/", "plan": "pro"}

// BenchmarkMatch measures what a request costs until the IDs of its buckets are there: of one limit
// and of five, beside 10 and 10,000 that do not apply.
func BenchmarkMatch(b *testing.B) {
	for _, matching := range []int{1, 5} {
		for _, others := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("matching=%d/others=%d", matching, others), func(b *testing.B) {
				m := mustParse(b, crowdDocument(matching, others)).Compile()
				var found [8]*Limit
				id := make([]byte, 0, usualIDBytes)
				b.ReportAllocs()
				for b.Loop() {
					all := m.Append(found[:0], "d", crowdRequest)
					if len(all) != matching {
						b.Fatalf("%d limits", len(all))
					}
					for _, l := range all {
						id = l.AppendBucket(id[:0], crowdRequest)
					}
				}
			})
		}
	}
}
