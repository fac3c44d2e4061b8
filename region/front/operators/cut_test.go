package operators

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/base/invalid"
)

// fakeCutter knows one region, eu.
type fakeCutter struct{ cuts []string }

func (f *fakeCutter) Cut(name, direction string, d time.Duration) ([]netip.Addr, error) {
	if name != "eu" {
		return nil, invalid.Fieldf("region", "has no node")
	}
	f.cuts = append(f.cuts, fmt.Sprintf("%s %s %v", name, direction, d))
	return []netip.Addr{netip.MustParseAddr("127.0.1.11")}, nil
}

func (*fakeCutter) PacketsLost() uint64 { return 7 }

func TestCut(t *testing.T) {
	const tooLong = "; give how long to cut, above 0 and at most 10m, such as 5s"
	length := func(text string) string {
		return fronts.Problem(400, "", `for: is \"`+text+`\"`+tooLong, `,"field":"for"`)
	}
	for _, c := range []struct{ name, body, want, cut string }{
		{"a region", `{"region":"eu","for":"5s"}`, "200\n" + fronts.JSONType +
			`{"region":"eu","direction":"both","for_ms":5000,"addresses":["127.0.1.11"],"packets_lost":7}`,
			"eu both 5s"},
		{"one way", `{"region":"eu","for":"10m","direction":"in"}`, "200\n" + fronts.JSONType +
			`{"region":"eu","direction":"in","for_ms":600000,"addresses":["127.0.1.11"],"packets_lost":7}`,
			"eu in 10m0s"},
		{"a heal", `{"region":"eu","heal":true}`, "200\n" + fronts.JSONType +
			`{"region":"eu","direction":"both","for_ms":0,"addresses":["127.0.1.11"],"packets_lost":7}`,
			"eu both 0s"},
		{"of nothing", `{"for":"5s"}`,
			fronts.Problem(400, "", "region: is missing; name the region to cut off", `,"field":"region"`),
			""},
		{"of no region", `{"region":"ue","for":"5s"}`, fronts.Problem(400, "", "region: has no node",
			`,"field":"region"`), ""},
		{"for ever", `{"region":"eu"}`, length(""), ""},
		{"too long", `{"region":"eu","for":"10m1s"}`, length("10m1s"), ""},
		{"of no length", `{"region":"eu","for":"0s"}`, length("0s"), ""},
		{"of a number", `{"region":"eu","for":5}`, fronts.Problem(400, "", "for: must be a JSON string",
			`,"field":"for"`), ""},
		{"sideways", `{"region":"eu","for":"5s","direction":"up"}`,
			fronts.Problem(400, "", `direction: is \"up\"; give both, in, out`, `,"field":"direction"`), ""},
		{"and a heal", `{"region":"eu","for":"5s","heal":true}`,
			fronts.Problem(400, "", "for: means nothing to a heal; leave it or heal out", `,"field":"for"`),
			""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cutter := &fakeCutter{}
			s := newServer(t, &fronts.Node{}, Options{Cutter: cutter})
			fronts.Compare(t, fronts.Exchange(s.http.Handler, "POST", "/v1/cut", "application/json", c.body), c.want)
			if len(cutter.cuts) > 1 || (len(cutter.cuts) == 1) != (c.cut != "") || c.cut != "" &&
				cutter.cuts[0] != c.cut {
				t.Errorf("cuts: %q, want %q", cutter.cuts, c.cut)
			}
		})
	}
}

func TestCutsAreRefusedUnlessAllowed(t *testing.T) {
	fronts.Compare(t, fronts.Exchange(newServer(t, &fronts.Node{}, Options{}).http.Handler, "POST", "/v1/cut",
		"application/json", `{"region":"eu","for":"5s"}`),
		fronts.Problem(403, "", noCuts, ""))
}

// FuzzDecodeCut: the decoder never panics, and accepts no cut that would not end.
func FuzzDecodeCut(f *testing.F) {
	for _, seed := range []string{`{"region":"eu","for":"5s"}`, `{"region":"eu","heal":true}`,
		`{"region":"eu","for":"-1ns"}`,
		`{"region":"eu","for":"9223372036854775807ns","direction":"in"}`, `{"heal":1}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decodeCut(body)
		if err == nil && (q.region == "" || q.d < 0 || q.d > maxCut) {
			t.Fatalf("%q is a cut of %+v", body, q)
		}
	})
}
