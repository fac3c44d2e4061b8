package operators

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/front/audit"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
)

// versioned returns fronts.Document with another version, and more text before it.
func versioned(version int, before string) string {
	return before + strings.Replace(fronts.Document, "version: 3", fmt.Sprintf("version: %d", version), 1)
}

// applying is a server whose audit log is kept.
type applying struct {
	*Server
	node  *fronts.Node
	audit *bytes.Buffer
}

func newApplying(t *testing.T) *applying {
	a := &applying{node: &fronts.Node{}, audit: &bytes.Buffer{}}
	a.Server = newServer(t, a.node, Options{Port: wire.Port{Audit: audit.New(a.audit, "us-east/n1", fronts.Quiet())}})
	return a
}

// post applies a text, and returns the status, the answer, and the act and outcome that were
// audited.
func (a *applying) post(path, contentType, text string) (code int, answer, acts string) {
	a.audit.Reset()
	q := httptest.NewRequest(http.MethodPost, path, strings.NewReader(text))
	q.Header.Set("Content-Type", contentType)
	w := httptest.NewRecorder()
	a.http.Handler.ServeHTTP(w, q)
	for _, l := range bytes.Split(bytes.TrimSpace(a.audit.Bytes()), []byte("\n")) {
		var e audit.Event
		if json.Unmarshal(l, &e) == nil {
			acts += fmt.Sprintf("%s %s%s;", e.Act, e.Region, e.Outcome)
		}
	}
	return w.Code, w.Body.String(), acts
}

func TestApply(t *testing.T) {
	const yaml = "application/yaml"
	a := newApplying(t)
	for _, c := range []struct {
		name, kind, text string
		code             int
		says, acts       string
	}{
		{"a newer document", yaml, versioned(4, ""), 200, `"epoch":"4-`, "document done;"},
		{"with a charset", yaml + "; charset=utf-8", versioned(5, ""), 200, `"before":"4-`, "document done;"},
		{"the same again", yaml, versioned(5, ""), 200, `"epoch":"5-`, "document done;"},
		{"an older one", yaml, versioned(4, ""), 409, "a newer document is in force", "document failed;"},
		{"another of the version", yaml, strings.Replace(versioned(5, ""), "100", "200", 1), 409,
			"two documents have one version", "document failed;"},
		{"a fence", yaml, versioned(6, "fenced: [eu-west]\n"), 200, `"epoch":"6-`, "fence eu-westdone;"},
		{"fenced before", yaml, versioned(7, "fenced: [eu-west]\n"), 200, `"epoch":"7-`, "document done;"},
		{"what is none", yaml, "version: 8\nlimits: []\n", 400, "document:1:1: regions: ", ""},
		{"JSON", "application/json", versioned(9, ""), 415, "Content-Type: application/yaml", ""},
		{"too much", yaml, strings.Repeat("#", policy.MaxDocumentBytes+1), 413, "larger than 1048576 bytes", ""},
	} {
		code, answer, acts := a.post("/v1/apply", c.kind, c.text)
		if code != c.code || !strings.Contains(answer, c.says) || acts != c.acts {
			t.Errorf("%s: %d %s, audited %q; want %d, %s, %q", c.name, code, answer, acts, c.code, c.says, c.acts)
		}
	}
}

// TestApplyAFarVersion: it takes a word more.
func TestApplyAFarVersion(t *testing.T) {
	a := newApplying(t)
	far := versioned(policy.MaxVersion, "")
	for path, want := range map[string]string{"/v1/apply": "quotad limits apply --yes", "/v1/apply?yes=false": "quotad limits apply --yes",
		"/v1/apply?yes=1": "quotad limits apply --yes"} {
		if code, answer, acts := a.post(path, "application/yaml", far); code != 409 || !strings.Contains(answer, want) || acts != "document failed;" {
			t.Errorf("%s: %d %s, audited %q", path, code, answer, acts)
		}
	}
	if code, answer, acts := a.post("/v1/apply?yes=true", "application/yaml", far); code != 200 || acts != "document done;" {
		t.Errorf("with the word: %d %s, audited %q", code, answer, acts)
	}
}

// TestApplyWithoutTheStore: the caller is told to come again, and the failure is audited.
func TestApplyWithoutTheStore(t *testing.T) {
	a := newApplying(t)
	a.node.Err = store.Failed("127.0.0.1:6379", "script adopt", errors.New("connection refused"))
	code, answer, acts := a.post("/v1/apply", "application/yaml", versioned(4, ""))
	if code != 503 || !strings.Contains(answer, "connection refused") || acts != "document failed;" {
		t.Errorf("%d %s, audited %q", code, answer, acts)
	}
}

func TestDocumentsAreShown(t *testing.T) {
	a := newApplying(t)
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		a.http.Handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		return w
	}
	d := a.node.Document()
	if w := get("/v1/document"); w.Body.String() != fronts.Document || w.Header().Get("ETag") != `"`+d.Epoch().String()+`"` ||
		w.Header().Get("Content-Type") != "application/yaml" {
		t.Errorf("%v %s", w.Header(), w.Body)
	}
	at := quantity.StoreTime(1_800_000_000_000_000)
	a.node.State.Region = "us-east"
	a.node.State.Documents = tenure.Documents{Open: []tenure.Told{{Epoch: d.Epoch(), At: at}},
		File: errors.New("an older file"), Held: 70,
		Limits: []tenure.HeldLimit{{Limit: &d.Limits[0], Since: at, Waiting: []string{"eu-west"}},
			{Limit: &d.Limits[0], Removed: true, Opens: at}},
		Regions: []tenure.RegionDocuments{{Region: "ap"}, {Region: "eu-west", Waited: time.Second,
			RegionTold: tenure.RegionTold{Open: []tenure.Told{{Epoch: d.Epoch(), At: at}}, Refused: errors.New("another of the version")}}}}
	epoch, moment := d.Epoch().String(), "2027-01-15T08:00:00Z"
	known := `"open":[{"document":"` + epoch + `","acknowledged":"` + moment + `"}],"file_refused":"an older file",` +
		`"regions":[{"region":"ap","open":[]},` +
		`{"region":"eu-west","open":[{"document":"` + epoch + `","acknowledged":"` + moment + `"}],"refused":"another of the version","waited_ms":1000}],` +
		`"limits":[{"domain":"api","limit":"a","since":"` + moment + `","waiting":["eu-west"]},` +
		`{"domain":"api","limit":"a","removed":true,"waiting":[],"until":"` + moment + `"}],"held":70`
	if got := get("/v1/status").Body.String(); !strings.Contains(got, `"documents":{`+known+`}`) {
		t.Errorf("the status shows %s", got)
	}
	if got := strings.TrimSpace(get("/v1/documents").Body.String()); got != `{"region":"us-east",`+known+`,"nodes":[{"node":"eu-west/n1","open":[],`+
		`"file_refused":"passed over"},{"node":"us-east/n1","open":["`+epoch+`"]}]}` {
		t.Errorf("the documents are %s", got)
	}
}
