package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
)

// Result is the result of one expectation.
type Result struct {
	// Text says what was expected. Want and Got are the expected and the measured figure.
	Text string `json:"text"`
	Want string `json:"want"`
	Got  string `json:"got"`
	OK   bool   `json:"ok"`
}

// Judge compares a record with what the scenario expects. It uses nothing else, so the same record
// always gives the same results.
func (s *Scenario) Judge(r *Record) []Result {
	results := []Result{s.stepsDone(r)}
	if len(r.Facts.Envoys) > 0 {
		results = append(results, r.told())
	}
	for _, e := range s.Expect {
		judge := map[string]func(*Record, Expectation) Result{
			"ceiling": s.ceiling, "admitted": s.admitted, "split": s.split, "degraded": s.degraded,
			"in-touch": s.inTouch,
			"borrows":  s.borrows, "answers": s.answers, "ready": s.ready, "alive": s.alive,
		}[e.That]
		results = append(results, judge(r, e))
	}
	return results
}

// OK reports whether every expectation was met.
func OK(all []Result) bool {
	for _, r := range all {
		if !r.OK {
			return false
		}
	}
	return true
}

// stepsDone checks that every step was done, and that each cut, loss or delay met some traffic: to
// cut unused ways proves nothing.
func (s *Scenario) stepsDone(r *Record) Result {
	out := Result{Text: "every step did what it is to do", Want: counted(len(s.Steps), "step")}
	done, effects := 0, int64(0)
	var wrong []string
	for _, e := range r.Events {
		if e.Err != nil {
			wrong = append(wrong, fmt.Sprintf("%s at %s: %s", e.Step.Do, e.Step.At, e.Why()))
			continue
		}
		done++
		effects += e.Effect
		if e.Step.hasEffect() && e.Effect == 0 {
			wrong = append(wrong,
				fmt.Sprintf("%s at %s: nothing that went between these regions was lost or held up by it", e.Step.Do, e.Step.At))
		}
	}
	out.Got = counted(done, "step")
	if effects > 0 {
		out.Got += fmt.Sprintf(", %d packets and streams lost or held up", effects)
	}
	if len(wrong) > 0 {
		out.Got += ": " + strings.Join(wrong, "; ")
	}
	out.OK = done == len(s.Steps) && len(wrong) == 0
	return out
}

// buckets returns the buckets that an expectation concerns.
func (e Expectation) buckets(watched []Bucket) (all []Bucket) {
	for _, b := range watched {
		if (e.Limit == "" || e.Limit == b.Limit) &&
			(e.Key == nil || strings.Join(e.Key, ",") == b.Key) {
			all = append(all, b)
		}
	}
	return all
}

// span describes the span of an expectation, for its text.
func (e Expectation) span(whole time.Duration) string {
	if e.From == 0 && e.To == whole {
		return ""
	}
	return fmt.Sprintf(" from %s to %s", e.From, e.To)
}

// in reports whether a request was sent within the span of an expectation, and in its region if it
// has one.
func (e Expectation) in(r *Record, a oracle.Answer) bool {
	at := r.sent(a)
	return (e.Region == "" || a.Region == e.Region) && at >= e.From && at < e.To
}
