package operators

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/decide/admit"
)

// fakeRehearsal remembers what it is to do.
type fakeRehearsal struct {
	loads map[string]int
	gone  map[string]time.Duration
}

func (f *fakeRehearsal) Load(region string, perSecond int) error {
	if region == "nowhere" {
		return &admit.FieldError{Field: "region", Problem: "does not run here"}
	}
	f.loads = map[string]int{region: perSecond}
	return nil
}

func (f *fakeRehearsal) KillStore(region string, d time.Duration) error {
	f.gone = map[string]time.Duration{region: d}
	return nil
}

func (f *fakeRehearsal) Loads() map[string]int { return f.loads }

func TestRehearse(t *testing.T) {
	f := &fakeRehearsal{}
	s := newServer(t, &fronts.Node{}, Options{Rehearsal: f})
	other := newServer(t, &fronts.Node{}, Options{})
	post := func(s *Server, body string) (int, string) {
		r := httptest.NewRequest("POST", "/v1/rehearse", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		return w.Code, w.Body.String()
	}
	for _, c := range []struct {
		body, want string
		code       int
	}{
		{`{"region":"eu","load":50}`, `{"loads":{"eu":50}}`, 200},
		{`{"region":"eu","kill_store":"5s"}`, `{"loads":{"eu":50}}`, 200},
		{`{"region":"eu","load":0}`, `{"loads":{"eu":0}}`, 200},
		{`{"region":"nowhere","load":1}`, "does not run here", 400},
		{`{"region":"eu","load":1001}`, "0 to 1000", 400},
		{`{"region":"eu","load":-1}`, "0 to 1000", 400},
		{`{"region":"eu","load":99999999999999999999}`, "0 to 1000", 400},
		{`{"region":"eu","load":"1"}`, "load", 400},
		{`{"region":"eu"}`, "give one of them", 400},
		{`{"region":"eu","load":1,"kill_store":"5s"}`, "give one of them", 400},
		{`{"region":"eu","kill_store":"2m"}`, "at most 1m", 400},
		{`{"region":"eu","kill_store":"0s"}`, "above 0", 400},
		{`{"region":"eu","kill_store":"soon"}`, "such as 5s", 400},
		{`{"load":1}`, "name a region", 400},
		{`{"regio":"eu"}`, "region", 400},
	} {
		if code, text := post(s, c.body); code != c.code || !strings.Contains(text, c.want) {
			t.Errorf("%s: %d %s, want %d %s", c.body, code, text, c.code, c.want)
		}
	}
	if f.gone["eu"] != 5*time.Second {
		t.Errorf("gone: %v", f.gone)
	}
	if code, text := post(other, `{"region":"eu","load":50}`); code != 403 || !strings.Contains(text, "quotad dev") {
		t.Errorf("where it is not allowed: %d %s", code, text)
	}
}
