package operators

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/region/base/invalid"
)

// fakeRehearsal remembers what it is to do.
type fakeRehearsal struct {
	loads map[string]int
	gone  map[string]time.Duration
}

func (f *fakeRehearsal) Load(region string, perSecond int) error {
	if region == "nowhere" {
		return invalid.Fieldf("region", "does not run here")
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
	post := func(s *Server, body string) string {
		return fronts.Exchange(s.http.Handler, "POST", "/v1/rehearse", "application/json", body)
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
		if got := post(s, c.body); !strings.HasPrefix(got, fmt.Sprintln(c.code)) || !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %d %s", c.body, got, c.code, c.want)
		}
	}
	if f.gone["eu"] != 5*time.Second {
		t.Errorf("gone: %v", f.gone)
	}
	if got := post(other, `{"region":"eu","load":50}`); !strings.HasPrefix(got, "403\n") || !strings.Contains(got, "quotad dev") {
		t.Errorf("where it is not allowed: %s", got)
	}
}
