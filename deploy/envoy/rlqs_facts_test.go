//go:build envoy

package envoy

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	model "github.com/quotad/quotad/chaos/play/envoy"
)

// never is an interval in which nothing fills while a test runs.
const never = 10_000 * time.Second

// expired returns what the recipe says of an Envoy whose assignment has ended.
func expired(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("rlqs.yaml")
	suite.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "expired_assignment_behavior:\n")
	part, _, found := strings.Cut(rest, "                  - name: envoy.filters.http.router")
	if !found {
		t.Fatal("the recipe says nothing of it")
	}
	return "expired_assignment_behavior:\n" + part
}

// TestFactsOfRLQS: what ECOSYSTEM.md's traps and chaos/play/envoy say of Envoy is so in a real one. Both
// are told the same, and asked the same.
func TestFactsOfRLQS(t *testing.T) {
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			wants := func(what, account string, n, allowed int) {
				t.Helper()
				if got := s.ask(account, n); got != allowed {
					t.Errorf("%s: %d of %d are allowed, want %d", what, got, n, allowed)
				}
			}
			wants("before anything is assigned", "a", 1, 0)
			suite.Eventually(t, "the first request is reported", func() bool { return len(s.of("a")) == 1 })
			if first := s.of("a")[0]; first.allowed != 0 || first.denied != 1 || first.of != 1 {
				t.Errorf("the first report is %+v", first)
			}
			s.tell(t, assigns("a", bucketOf(5, never), time.Hour))
			wants("a bucket starts full", "a", 2, 2)
			s.tell(t, assigns("a", bucketOf(5, never), time.Hour))
			wants("the same again goes on", "a", 1, 1)
			s.tell(t, assigns("a", bucketOf(5, 2*never), time.Hour))
			wants("other seconds of the interval go on", "a", 1, 1)
			s.tell(t, assigns("a", bucketOf(20, never), time.Hour))
			wants("another size starts with the same part of its tokens", "a", 2, 2)
			s.tell(t, assigns("a", bucketOf(20, never+time.Nanosecond), time.Hour))
			wants("other nanoseconds of the interval are another bucket", "a", 9, 2)
			s.tell(t, assigns("a", bucketOf(30, never), time.Hour))
			wants("a bucket in place of an empty one is empty", "a", 9, 0)
			s.tell(t, assigns("a", perTimeUnit, time.Hour))
			wants("requests_per_time_unit is passed over", "a", 9, 0)
			s.tell(t, assigns("a", allowAll, time.Hour))
			wants("all are allowed", "a", 9, 9)
			s.tell(t, assigns("a", perTimeUnit, time.Hour))
			wants("requests_per_time_unit is passed over again", "a", 9, 9)
			s.tell(t, assigns("a", denyAll, time.Hour))
			wants("all are denied", "a", 9, 0)
			s.tell(t, assigns("a", bucketOf(6, never), time.Hour))
			wants("a bucket after a rule starts full", "a", 9, 6)
			s.tell(t, assigns("a", allowAll, 0))
			suite.Eventually(t, "an assignment without a time to live ends at once", func() bool { return s.ask("a", 1) == 0 })
			s.reportsAll(t)
			s.forgets(t)
			s.goesOn(t)
		})
	}
}

// reportsAll: a timer of 5 s reports all bucket ids in one message, with all that clients saw.
func (s *subject) reportsAll(t *testing.T) {
	t.Helper()
	suite.Eventually(t, "everything is reported", func() bool {
		allowed, denied := s.sum("a")
		return allowed == s.seen["a"][0] && denied == s.seen["a"][1]
	})
	count := len(s.of("a"))
	suite.Eventually(t, "two more reports come", func() bool { return len(s.of("a")) >= count+2 })
	all := s.of("a")
	for i, r := range all[count:] {
		if r.of != 2 || r.allowed+r.denied != 0 {
			t.Errorf("a report without requests: %+v", r)
		}
		if apart := r.at.Sub(all[count+i-1].at); apart < model.ReportEvery/2 || apart > suite.Patience {
			t.Errorf("reports are %v apart", apart)
		}
	}
}

// forgets: an abandoned bucket id is as one that was never seen.
func (s *subject) forgets(t *testing.T) {
	t.Helper()
	s.tell(t, assigns("a", allowAll, time.Hour))
	if s.ask("a", 1) != 1 {
		t.Error("it is not allowed")
	}
	s.tell(t, abandons("a"))
	count := len(s.of("a"))
	if s.ask("a", 1) != 0 {
		t.Error("an abandoned bucket id is allowed")
	}
	suite.Eventually(t, "it is reported as new", func() bool { return len(s.of("a")) > count })
	if r := s.of("a")[count]; r.of != 1 || r.allowed != 0 || r.denied != 1 {
		t.Errorf("an abandoned bucket id is reported as %+v", r)
	}
}

// goesOn: a stream that breaks ends no assignment, and is opened again by the timer alone.
func (s *subject) goesOn(t *testing.T) {
	t.Helper()
	s.tell(t, assigns("a", bucketOf(4, never), time.Hour))
	if got := s.ask("a", 2); got != 2 {
		t.Errorf("%d of 2 are allowed", got)
	}
	s.cut()
	if got := s.ask("a", 6); got != 2 {
		t.Errorf("without a stream %d more are allowed, want 2", got)
	}
	count := len(s.of("a"))
	suite.Eventually(t, "it reports on another stream", func() bool { return len(s.of("a")) > count })
	if r := s.of("a")[count]; r.stream != 2 || r.of != 2 {
		t.Errorf("the first report of the new stream is %+v", r)
	}
}

// TestTokenBucketBeforeAnAssignment: Envoy crashes with the second request.
func TestTokenBucketBeforeAnAssignment(t *testing.T) {
	_, at := startScript(t)
	p := startEnvoy(t, "rlqs.yaml", startApp(t), []string{at}, edit{"fallback_rate_limit: {blanket_rule: DENY_ALL}",
		"fallback_rate_limit: {token_bucket: {max_tokens: 5, tokens_per_fill: 20, fill_interval: 1s}}"})
	c := p.client(t, "127.0.0.2")
	suite.Eventually(t, "Envoy 1.40 crashes (if it does not, say so in the page and the recipe)", func() bool {
		_, err := c.ask(t.Context(), "GET", "/", "X-Account", "acme")
		return err != nil && !p.Running()
	})
	if !strings.Contains(p.Output(), "Segmentation fault") {
		t.Errorf("Envoy ended otherwise:\n%s", p.Output())
	}
}

// TestShortFillInterval: Envoy divides by the whole seconds of an interval, so that a bucket of less
// than a second is always full.
func TestShortFillInterval(t *testing.T) {
	s, at := startScript(t)
	p := startEnvoy(t, "rlqs.yaml", startApp(t), []string{at})
	c := p.client(t, "127.0.0.2")
	one := &subject{s, func(account string) bool {
		return c.get(t, "GET", "/", "X-Account", account).code == http.StatusOK
	}, map[string][2]uint64{}}
	one.ask("a", 1)
	one.tell(t, assigns("a", bucketOf(1, 500*time.Millisecond), time.Hour))
	// Within a minute 2 a second would be 120.
	if got := one.ask("a", 500); got != 500 {
		t.Errorf("%d of 500 requests were allowed", got)
	}
}

// TestTimeToLiveIsWholeSeconds: Envoy takes no notice of the rest.
func TestTimeToLiveIsWholeSeconds(t *testing.T) {
	const ttl = 1900 * time.Millisecond
	for name, s := range subjects(t) {
		t.Run(name, func(t *testing.T) {
			s.ask("a", 1)
			suite.Eventually(t, "it ends before its time", func() bool {
				s.tell(t)
				begun := time.Now()
				s.say(t, assigns("a", allowAll, ttl))
				suite.Eventually(t, "it is allowed", func() bool { return s.ask("a", 1) == 1 })
				suite.Eventually(t, "it is denied", func() bool { return s.ask("a", 1) == 0 })
				return time.Since(begun) < ttl
			})
		})
	}
}
