package operators

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
	"github.com/quotad/quotad/region/front/asjson"
	"github.com/quotad/quotad/region/front/roles"
	"github.com/quotad/quotad/region/front/wire"
	"github.com/quotad/quotad/region/memory/rules"
)

// overseen is a node that knows a bucket, and another node that does.
func overseen(t *testing.T) *fronts.Node {
	t.Helper()
	return fronts.Overseen(t, func(other *fronts.Node) { newServer(t, other, Options{}) })
}

// asks asks an admin listener, and reads the answer into one.
func asks(t *testing.T, s *Server, target string, code int, into proto.Message) string {
	t.Helper()
	w := httptest.NewRecorder()
	s.http.Handler.ServeHTTP(w, httptest.NewRequest("GET", target, nil))
	if w.Code != code {
		t.Fatalf("%s: %d %s, want %d", target, w.Code, w.Body, code)
	}
	if into != nil {
		suite.Must(t, asjson.Unmarshal(w.Body.Bytes(), into))
	}
	return w.Body.String()
}

func TestOverview(t *testing.T) {
	f := overseen(t)
	s := newServer(t, f, Options{})
	var o quotadv1.OverviewResponse
	text := asks(t, s, "/v1/overview?hottest=5", 200, &o)
	if len(o.Nodes) != 2 || o.Nodes[1].Region != "us-east" || fmt.Sprint(o.Silent) != "[eu-west/n2]" {
		t.Errorf("%s", text)
	}
	if l := o.Nodes[1].Limits; len(l) != 1 || l[0].Limit != "a" || l[0].AdmittedUnits != 7 || l[0].DeniedUnits != 3 ||
		l[0].Window.AsDuration() != time.Minute {
		t.Errorf("%s", text)
	}
	if len(o.Hottest) != 1 {
		t.Fatalf("%s", text)
	}
	if b := o.Hottest[0]; b.AdmittedUnits != 14 || b.DeniedUnits != 6 || b.Used != 70 || b.LimitUnits != 100 ||
		len(b.Parts) != 2 || !proto.Equal(b.Parts[1], &quotadv1.BucketPart{Region: "us-east", Entitlement: 50,
		Share: 50, Used: 20, Free: 30}) ||
		b.Descriptors["account"] != "42" {
		t.Errorf("%v", b)
	}
	before := f.Questions
	asks(t, s, "/v1/overview?hottest=5", 200, nil)
	if f.Questions != before {
		t.Error("the others were asked again within a second")
	}
	for _, wrong := range []string{"101", "-1", "x", "+5"} {
		text := asks(t, s, "/v1/overview?hottest="+strings.ReplaceAll(wrong, "+", "%2B"), 400, nil)
		if !strings.Contains(text, "0 to 100") {
			t.Errorf("%s: %s", wrong, text)
		}
	}
}

func TestExplain(t *testing.T) {
	s := newServer(t, overseen(t), Options{})
	var e quotadv1.ExplainResponse
	text := asks(t, s, "/v1/explain/a?account=42", 200, &e)
	if !strings.HasPrefix(e.Sentence, "The last request, 1m ago in us-east, was admitted") ||
		e.Domain != "api" || e.Used != 70 || e.LimitUnits != 100 || len(e.Regions) != 2 ||
		e.Window.AsDuration() != time.Minute {
		t.Errorf("%s", text)
	}
	if v := e.Regions[1]; v.Region != "us-east" || v.Free != 30 || v.Now == nil || v.Now.Remaining != 29 ||
		v.Last == nil || v.Last.Reason != quotadv1.Reason_REASON_WITHIN_LIMIT {
		t.Errorf("%+v", v)
	}
	if strings.Contains(text, `"owed"`) {
		t.Errorf("a limit that is not charged always: %s", text)
	}
	asks(t, s, "/v1/explain/b?account=42", 404, nil)
	if text := asks(t, s, "/v1/explain/a", 400, nil); !strings.Contains(text, "descriptors.account") {
		t.Errorf("%s", text)
	}
}

// TestExplainSaysWhatIsOwed: of a limit that is charged always, by the regions that owe and those
// that do not.
func TestExplainSaysWhatIsOwed(t *testing.T) {
	f := overseen(t)
	for id, look := range f.Looks {
		charged := *look.Limit
		charged.Charge = policy.ChargeAlways
		look.Limit, look.Inspected.Used = &charged, 57
		f.Looks[id] = look
	}
	var e quotadv1.ExplainResponse
	text := asks(t, newServer(t, f, Options{}), "/v1/explain/a?account=42", 200, &e)
	if e.GetOwed() != 7 || e.Regions[1].GetOwed() != 7 || e.Regions[0].Owed != nil ||
		!strings.Contains(e.Sentence, "us-east owes 7, ") {
		t.Errorf("%s", text)
	}
}

// TestExplainSaysWhatClassesMayUse: of a limit with classes, in each region.
func TestExplainSaysWhatClassesMayUse(t *testing.T) {
	f := overseen(t)
	for id, look := range f.Looks {
		classed := *look.Limit
		classed.Classes = &policy.Classes{By: "priority", All: []policy.Class{{Name: "batch", Part: 600_000}, {Name: "interactive", Part: policy.PPMOne}}}
		look.Limit = &classed
		look.Inspected.Share, look.Inspected.Used, look.Inspected.Free = 50, 25, 25
		f.Looks[id] = look
	}
	var e quotadv1.ExplainResponse
	text := asks(t, newServer(t, f, Options{}), "/v1/explain/a?account=42", 200, &e)
	if !strings.Contains(text, `"classes":{"by":"priority","all":[{"class":"batch","may_use":30,"free":5},{"class":"interactive","may_use":50,"free":25}]}`) {
		t.Errorf("%s", text)
	}
}

// TestExplainNamesTheCalendar: of a limit by the calendar one reads which window it has, and the
// length of the present one.
func TestExplainNamesTheCalendar(t *testing.T) {
	d, err := policy.Parse("limits.yaml", []byte(`version: 1
regions: {r: {weight: 1}}
limits:
  - {name: m, domain: api, key: [account], algorithm: fixed_window, limit: 9, window: month, timezone: Europe/Berlin}
`))
	suite.Must(t, err)
	var e quotadv1.ExplainResponse
	text := asks(t, newServer(t, &fronts.Node{Open: d}, Options{}), "/v1/explain/m?account=42", 200, &e)
	if want := d.Limits[0].WindowAt(time.Now()); e.Window.AsDuration() != want ||
		!strings.Contains(e.Sentence, "It counts by the calendar: month, Europe/Berlin.") {
		t.Errorf("want a window of %v: %s", want, text)
	}
}

// TestNamesAreCompleted: the domain and the conditions of a limit need not be named where they are
// certain.
func TestNamesAreCompleted(t *testing.T) {
	d, err := policy.Parse("limits.yaml", []byte(`version: 1
regions: {r: {weight: 1}}
limits:
  - {name: one, domain: api, key: [account], match: {plan: free}, algorithm: fixed_window, limit: 9, window: 1m}
  - {name: two, domain: api, key: [account], match: {plan: free}, algorithm: fixed_window, limit: 9, window: 1m}
  - {name: two, domain: api, key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 99, window: 1m}
  - {name: three, domain: api, key: [user], algorithm: fixed_window, limit: 9, window: 1m}
  - {name: three, domain: web, key: [user], algorithm: fixed_window, limit: 9, window: 1m}
`))
	suite.Must(t, err)
	for _, c := range []struct {
		p     place
		want  string // of the completed one
		field string // that is missing
	}{
		{place{"one", "", map[string]string{"account": "1"}}, "api map[account:1 plan:free]", ""},
		{place{"one", "api", map[string]string{"account": "1", "plan": "free"}}, "api map[account:1 plan:free]", ""},
		{place{"one", "", map[string]string{}}, "", "descriptors.account"},
		{place{"two", "", map[string]string{"account": "1"}}, "", "descriptors"},
		{place{"two", "", map[string]string{"account": "1", "plan": "pro"}}, "api map[account:1 plan:pro]", ""},
		{place{"three", "", map[string]string{"user": "1"}}, "", "domain"},
		{place{"three", "web", map[string]string{"user": "1"}}, "web map[user:1]", ""},
		{place{"none", "", map[string]string{}}, "", "limit"},
	} {
		p, err := completed(d, c.p)
		if problem, wrong := err.(*invalid.Field); wrong {
			if problem.Name != c.field {
				t.Errorf("%+v: %v", c.p, err)
			}
			continue
		} else if err == rules.ErrNoSuchBucket && c.field == "limit" {
			continue
		}
		if got := fmt.Sprint(p.domain, " ", p.descriptors); got != c.want || c.field != "" {
			t.Errorf("%+v: %s, want %s %s", c.p, got, c.want, c.field)
		}
	}
}

func TestListedBuckets(t *testing.T) {
	f := &fronts.Node{}
	for _, account := range []string{"42", "43", "7"} {
		f.Listed = append(f.Listed, region.Listed{Ref: policy.BucketRef{Domain: "api", Name: "a",
			Key: []policy.KeyValue{{Name: "account", Value: account}}}})
	}
	s := newServer(t, f, Options{})
	for query, want := range map[string]string{"": "42 43 7 false", "account=4": "42 43 false",
		"most=1&account=4": "42 true", "limit=b": "false", "domain=web": "false",
		"limit=a&domain=api&account=7": "7 false", "user=7": "false"} {
		var l quotadv1.ListBucketsResponse
		asks(t, s, "/v1/buckets?"+query, 200, &l)
		var got []string
		for _, b := range l.Buckets {
			got = append(got, b.Descriptors["account"])
		}
		if got := strings.Join(append(got, fmt.Sprint(l.More)), " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for _, query := range []string{"most=0", "most=1001", "most=x"} {
		asks(t, s, "/v1/buckets?"+query, 400, nil)
	}
}

// TestCallersSeeTheirDomains: a caller who may name some domains sees the buckets and limits of
// these alone.
func TestCallersSeeTheirDomains(t *testing.T) {
	callers, node := fronts.NewRoles(t), overseen(t)
	s := newServer(t, node, Options{Port: wire.Port{Guard: callers.Guard("admin")}})
	node.Listed = []region.Listed{{Ref: policy.BucketRef{Domain: "api", Name: "a"}}}
	for who, want := range map[roles.Role]int{"admin": 1, "tenant": 0} { // of domain web
		get := func(path string) (code int, text string) {
			q, w := httptest.NewRequest("GET", path, nil), httptest.NewRecorder()
			q.Header.Set("Authorization", "Bearer "+callers.Tokens[who])
			s.http.Handler.ServeHTTP(w, q)
			return w.Code, w.Body.String()
		}
		code, text := get("/v1/overview?hottest=5")
		var o quotadv1.OverviewResponse
		if err := asjson.Unmarshal([]byte(text), &o); err != nil || code != 200 ||
			len(o.Hottest) != want || len(o.Nodes) != 2 || len(o.Nodes[0].Limits) != want {
			t.Errorf("%s: %d %s, %v", who, code, text, err)
		}
		code, text = get("/v1/buckets")
		var l quotadv1.ListBucketsResponse
		if err := asjson.Unmarshal([]byte(text), &l); err != nil || code != 200 || len(l.Buckets) != want {
			t.Errorf("%s: %d %s, %v", who, code, text, err)
		}
		if code, text := get("/v1/explain/a?account=42"); code != map[int]int{1: 200, 0: 403}[want] {
			t.Errorf("%s: %d %s", who, code, text)
		}
	}
}

// TestManyLimitsAreBounded: a node names the limits with the most units.
func TestManyLimitsAreBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("version: 4\nregions: {r: {weight: 1}}\nlimits:\n")
	f := &fronts.Node{}
	f.Units = map[string]admit.LimitUnits{}
	for i := range 300 {
		fmt.Fprintf(&text, "  - {name: l%d, domain: api, key: [a], algorithm: fixed_window, limit: 9, window: 1m}\n", i)
		f.Units[fmt.Sprintf("l%d", i)] = admit.LimitUnits{Admitted: float64(i), Denied: 1e300}
	}
	d, err := policy.Parse("limits.yaml", []byte(text.String()))
	suite.Must(t, err)
	f.Open = d
	all := newServer(t, f, Options{}).limitViews()
	if len(all) != 256 || all[0].Limit != "l299" || quantity.Units(all[0].DeniedUnits) < 1<<50 {
		t.Errorf("%d limits, the first %v", len(all), all[0])
	}
}
