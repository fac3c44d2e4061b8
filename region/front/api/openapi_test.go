package api

import (
	"bytes"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region/decide/admit"
)

// TestOpenAPIHasEveryRoute: the file has the paths of both listeners with their methods, and no
// others.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	s := newServer(t, &fronts.Node{}, fronts.Quiet())
	served := map[string]bool{}
	for port, calls := range map[string]map[string][]string{"api": s.Callers.Calls(),
		"admin": s.Operators.Calls()} {
		for pattern, methods := range calls { // of gRPC there are none
			path := strings.TrimSuffix(pattern, "{$}")
			for _, method := range methods {
				served[port+" "+method+" "+path] = true
			}
		}
	}
	for path, item := range fronts.OpenAPI(t).Paths.Map() {
		for method, operation := range item.Operations() {
			for _, port := range operation.Tags {
				route := port + " " + method + " " + path
				if !served[route] {
					t.Errorf("openapi.yaml has %s, which is not served; take it out", route)
				}
				delete(served, route)
				if method == http.MethodGet { // HEAD goes with it, as the file says
					head := port + " " + http.MethodHead + " " + path
					if !served[head] {
						t.Errorf("%s is not served, and GET is", head)
					}
					delete(served, head)
				}
			}
		}
	}
	for _, route := range slices.Sorted(maps.Keys(served)) {
		t.Errorf("%s is served and not in openapi.yaml; describe it there", route)
	}
}

// TestAnswersAreAsInOpenAPI: what the handlers answer is valid by the schema of its status.
func TestAnswersAreAsInOpenAPI(t *testing.T) {
	doc := fronts.OpenAPI(t)
	const json = "application/json"
	const place = `{"limit":"account-minute","domain":"api","descriptors":{"account":"42"}}`
	for _, c := range []struct {
		method, path, target, contentType, body string
		decision                                admit.Decision
		code                                    int
	}{
		{"POST", "/v1/check", "", json, fronts.Request, fronts.Allowed(), 200},
		{"POST", "/v1/check", "", json, fronts.Request, fronts.Denied(), 429},
		{"POST", "/v1/check", "", json, fronts.Request, fronts.Undecided(admit.StoreFailure), 503},
		{"POST", "/v1/check", "", json, `{"cost":"1"}`, fronts.Allowed(), 400},
		{"POST", "/v1/check", "", "text/plain", fronts.Request, fronts.Allowed(), 415},
		{"POST", "/v1/peek", "", json, fronts.Request, fronts.Denied(), 200},
		{"POST", "/v1/report", "", json, fronts.Request, fronts.Owing(), 200},
		{"POST", "/v1/check-batch", "", json, `{"requests":[` + fronts.Request + `,{}]}`, fronts.Allowed(), 200},
		{"POST", "/v1/settle", "", json, `{"receipt":"` + fronts.Receipt + `","used":0}`, fronts.Allowed(), 200},
		{"POST", "/json", "", "", `{"domain":"api","descriptors":[` +
			`{"entries":[{"key":"account","value":"42"}]}]}`, fronts.Allowed(), 200},
		{"GET", "/v1/status", "", "", "", fronts.Allowed(), 200},
		{"GET", "/v1/buckets/{limit}", "/v1/buckets/account-minute?domain=api&account=42", "", "",
			fronts.Allowed(), 200},
		{"GET", "/v1/buckets/{limit}", "/v1/buckets/none?domain=api", "", "", fronts.Allowed(), 404},
		{"GET", "/v1/documents", "", "", "", fronts.Allowed(), 200},
		{"GET", "/v1/overview", "", "", "", fronts.Allowed(), 200},
		{"GET", "/v1/explain/{limit}", "/v1/explain/a?account=42", "", "", fronts.Allowed(), 200},
		{"GET", "/v1/buckets", "", "", "", fronts.Allowed(), 200},
		{"POST", "/v1/recover", "", json, `{"region":"us-east"}`, fronts.Allowed(), 200},
		{"POST", "/v1/reset", "", json, place, fronts.Allowed(), 200},
		{"POST", "/v1/cut", "", json, `{"region":"eu-west","for":"1s"}`, fronts.Allowed(), 403},
		{"POST", "/v1/apply", "", "application/yaml",
			strings.Replace(fronts.Document, "version: 3", "version: 4", 1), fronts.Allowed(), 200},
		{"POST", "/v1/apply", "", "application/yaml", "{", fronts.Allowed(), 400},
	} {
		f := fronts.Overseen(t, func(other *fronts.Node) { newServer(t, other, fronts.Quiet()) })
		f.Decision, f.State = c.decision, fronts.Status()
		if c.target == "" {
			c.target = c.path
		}
		operation := doc.Paths.Value(c.path).GetOperation(c.method)
		served(t, f, func(t *testing.T, s *front) {
			at := s.At
			if slices.Contains(operation.Tags, "admin") {
				at = s.AdminAt
			}
			r, body := s.answer(t, c.method, "http://"+at+c.target, c.contentType, c.body)
			if r.StatusCode != c.code {
				t.Errorf("%s %s: answered %d %s, want %d", c.method, c.target, r.StatusCode, body, c.code)
				return
			}
			wantValid(t, c.method+" "+c.target, operation, r, body)
		})
	}
}

// wantValid holds an answer against the schema that an operation has for its status and type.
func wantValid(t *testing.T, at string, of *openapi3.Operation, r *http.Response, body []byte) {
	t.Helper()
	response := of.Responses.Status(r.StatusCode)
	if response == nil {
		response = of.Responses.Default()
	}
	content := response.Value.Content[r.Header.Get("Content-Type")]
	if content == nil {
		t.Errorf("%s: openapi.yaml has no %s for %d", at, r.Header.Get("Content-Type"), r.StatusCode)
		return
	}
	var answer any
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Errorf("%s: %v", at, err)
	} else if err := content.Schema.Value.VisitJSON(answer); err != nil {
		t.Errorf("%s: %d %s: %v", at, r.StatusCode, body, err)
	}
}

// TestOpenAPIIsServed: both listeners serve the file.
func TestOpenAPIIsServed(t *testing.T) {
	file, err := os.ReadFile("../wire/openapi.yaml")
	suite.Must(t, err)
	served(t, &fronts.Node{}, func(t *testing.T, s *front) {
		for _, at := range []string{s.At, s.AdminAt} {
			r, body := s.answer(t, http.MethodGet, "http://"+at+"/v1/openapi.yaml", "", "")
			if r.StatusCode != http.StatusOK || !bytes.Equal(body, file) {
				t.Errorf("%s answers %d with %d bytes", at, r.StatusCode, len(body))
			}
		}
	})
}

// answer sends a request, and returns the answer with its body.
func (s *front) answer(t *testing.T, method, url, contentType, body string) (*http.Response, []byte) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	suite.Must(t, err)
	q.Header.Set("Content-Type", contentType)
	r, err := s.Web.Do(q)
	suite.Must(t, err)
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	suite.Must(t, err)
	return r, text
}
