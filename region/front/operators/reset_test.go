package operators

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/front/wire"
)

func TestReset(t *testing.T) {
	for _, c := range []struct {
		name, body string
		err        error
		want       string
	}{
		{"a bucket", `{"limit":"account-minute","domain":"api","descriptors":{"account":"42"}}`,
			nil, "200\n" + fronts.JSONType + `{"cleared":31}`},
		{"of no such limit", `{"limit":"other","domain":"api","descriptors":{"account":"42"}}`, nil,
			fronts.Problem(404, "", "no limit of this name and domain applies to these descriptors", "")},
		{"of no limit", `{"domain":"api"}`, nil,
			fronts.Problem(404, "", "no limit of this name and domain applies to these descriptors", "")},
		{"of no domain", `{"limit":"account-minute"}`, nil,
			fronts.Problem(400, "", "domain: is missing; name the domain of the limits to check",
				`,"field":"domain"`)},
		{"with a cost", `{"limit":"account-minute","domain":"api","cost":1}`, nil,
			fronts.Problem(400, "", `body: has the unknown field \"cost\"; there are limit, domain and descriptors`, `,"field":"body"`)},
		{"of a number", `{"limit":1}`, nil, fronts.Problem(400, "", "limit: must be a JSON string",
			`,"field":"limit"`)},
		{"too large", `{"limit":"` + strings.Repeat("a", wire.MaxBodyBytes) + `"}`, nil,
			fronts.Problem(413, "", "the body is larger than 65536 bytes", "")},
		{"of a store that fails", `{"limit":"account-minute","domain":"api"}`,
			errors.New("reset: unknown store"), fronts.Problem(503, "", "reset: unknown store", "")},
		{"that took too long", `{"limit":"account-minute","domain":"api"}`,
			context.DeadlineExceeded,
			fronts.Problem(503, "", "the request ended before it was answered; a check, settlement or reset may have been carried out", "")},
	} {
		t.Run(c.name, func(t *testing.T) {
			node := &fronts.Node{Err: c.err}
			fronts.Compare(t, fronts.Exchange(newServer(t, node, Options{}).http.Handler, "POST", "/v1/reset",
				"application/json", c.body), c.want)
			if done := len(node.Resets) == 1 && maps.Equal(node.Resets[0], map[string]string{"account": "42"}); done != strings.HasPrefix(c.want, "200") {
				t.Errorf("resets: %v", node.Resets)
			}
		})
	}
}

// FuzzDecodeReset: the decoder never panics, and what it accepts is what encoding/json reads, which
// is more lenient.
func FuzzDecodeReset(f *testing.F) {
	for _, seed := range []string{`{"limit":"account-minute","domain":"api","descriptors":{"account":"42"}}`, `{}`, `{"limit":null}`,
		`{"limit":"a","limit":"b"}`, `{"descriptors":{"a":"1","\u0061":"2"}}`,
		`{"domain":"\ud800"}`, `{"cost":1}`, `[]`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, err := decodeReset(body)
		var lenient struct {
			Limit, Domain string
			Descriptors   map[string]string
		}
		fronts.WantLenient(t, body, err, &lenient)
		if err == nil && (got.limit != lenient.Limit || got.domain != lenient.Domain ||
			!maps.Equal(got.descriptors, lenient.Descriptors)) {
			t.Fatalf("%q is %+v here and %+v for encoding/json", body, got, lenient)
		}
	})
}
