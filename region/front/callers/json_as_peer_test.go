package callers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
)

// TestJSONAnswersAsThePeer: /json has the statuses that envoyproxy/ratelimit 3fb7026 gave to the same
// requests, but for those that are marked, whose status there is in a comment.
func TestJSONAnswersAsThePeer(t *testing.T) {
	s := newServer(t, envoysNode(t, fixtures.Kinds["embedded"](t)), fronts.Quiet())
	const one = `{"domain":"envoy","descriptors":[{"entries":[{"key":"special","value":"7"}]}]}`
	const answer, problem = fronts.JSONType, fronts.ProblemType
	for _, c := range []struct {
		name, method, contentType, body string
		code                            int
		answers                         string
	}{
		{"a form", "POST", "application/x-www-form-urlencoded", one, 200, answer},
		{"no content type", "POST", "", one, 200, answer},
		{"text", "POST", "text/plain", one, 200, answer},
		{"JSON of another charset", "POST", "application/json; charset=utf-16", one, 200, answer},
		{"names with underscores", "POST", "", `{"domain":"envoy","descriptors":[{"entries":[{"key":"special"}],"hits_addend":"1"}],"hits_addend":1}`, 200, answer},
		{"no value", "POST", "", `{"domain":"envoy","descriptors":[{"entries":[{"key":"special"}]}]}`, 200, answer},
		{"no limit applies", "POST", "", `{"domain":"envoy","descriptors":[{"entries":[{"key":"no such key"}]}]}`, 200, answer},
		{"a domain that nobody has", "POST", "", `{"domain":"no body!","descriptors":[{"entries":[{"key":"special"}]}]}`, 200, answer},
		{"too much", "POST", "", `{"domain":"envoy","descriptors":[{"entries":[{"key":"special"}]}],"hitsAddend":10}`, 429, answer},
		{"an unknown field", "POST", "", strings.Replace(one, "{", `{"x":1,`, 1), 400, problem},
		{"a field twice", "POST", "", strings.Replace(one, "{", `{"domain":"envoy",`, 1), 400, problem},
		{"no domain", "POST", "", `{"descriptors":[{"entries":[{"key":"special"}]}]}`, 400, problem},
		{"no descriptors", "POST", "", `{"domain":"envoy"}`, 400, problem},
		{"an empty object", "POST", "", `{}`, 400, problem},
		{"null", "POST", "", `null`, 400, problem},
		{"a list", "POST", "", `[]`, 400, problem},
		{"more than one value", "POST", "", one + " x", 400, problem},
		{"nothing", "POST", "", ``, 400, problem},
		{"half a character", "POST", "", strings.Replace(one, "7", `\ud800`, 1), 400, problem},
		// Others than there.
		{"another method", "PUT", "", one, 405, problem},                                                                                        // 200
		{"no entries", "POST", "", `{"domain":"envoy","descriptors":[{}]}`, 400, problem},                                                       // 200
		{"an empty key", "POST", "", `{"domain":"envoy","descriptors":[{"entries":[{"key":""}]}]}`, 400, problem},                               // 200
		{"17 descriptors", "POST", "", strings.Replace(one, "[{", "[{"+strings.Repeat(`"entries":[{"key":"special"}]},{`, 16), 1), 429, answer}, // 200
	} {
		t.Run(c.name, func(t *testing.T) {
			got := fronts.Exchange(s.http.Handler, c.method, "/json", c.contentType, c.body)
			if head, _, _ := strings.Cut(got, "{"); !strings.HasPrefix(got, fmt.Sprintln(c.code)) || !strings.HasSuffix(head, c.answers) {
				t.Errorf("%s; want %d, %s", got, c.code, c.answers)
			}
		})
	}
}
