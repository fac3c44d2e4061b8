package scenario

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

func parsed(t *testing.T, file string, edits ...string) (*Scenario, error) {
	t.Helper()
	src, err := os.ReadFile(file)
	suite.Must(t, err)
	text := string(src)
	for i := 0; i < len(edits); i += 2 {
		if !strings.Contains(text, edits[i]) {
			t.Fatalf("nothing to replace: %s", edits[i])
		}
		text = strings.Replace(text, edits[i], edits[i+1], 1)
	}
	return Parse("envoys.yaml", []byte(text))
}

const shortEnvoys = "testdata/envoys.yaml"

func TestParseEnvoys(t *testing.T) {
	s, err := parsed(t, shortEnvoys)
	suite.Must(t, err)
	if s.region("us").Envoys != 2 || len(s.Load[0].Envoys) != 1 || len(s.Load[2].Envoys) != 2 ||
		len(s.Load[3].Envoys) != 0 || s.Steps[0].Envoy != 1 {
		t.Errorf("read as %+v", s)
	}
	if b := s.Watched()[0]; !b.Assigned || !b.judged().Assigned {
		t.Errorf("judged by %+v", b)
	}
	for old, c := range map[string]struct{ edit, says string }{
		"assign: {ttl: 6s, max_burst: 150}": {"shadow: false", "of account Envoys are assigned nothing"},
		"us: {weight: 1, envoys: 2}":        {"us: {weight: 1}", "us has no Envoys"},
		"rate: 220, envoys: [1]":            {"rate: 220, envoys: [3]", "1 to 2"},
		"rate: 80, envoys: [1, 2]":          {"rate: 80, envoys: [1, 1]", "given twice"},
		"rate: 30, envoys: [2]":             {"rate: 30, envoys: []", "the list is empty"},
		"rate: 30, envoys":                  {"rate: 30, cost: 2, envoys", "costs 1 at an Envoy"},
		"region: us, envoy: 1}":             {"region: us, envoy: 3}", "1 to 2"},
	} {
		_, err := parsed(t, shortEnvoys, old, c.edit)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", c.edit, err, c.says)
		}
	}
}

// What Envoys admit is judged as everything else: one that admits what it was not assigned is
// found.
func TestEnvoysAreJudged(t *testing.T) {
	s, err := parsed(t, shortEnvoys)
	suite.Must(t, err)
	q := s.question(s.Load[0])
	record := func(each time.Duration) *Record {
		r := &Record{Began: began, Length: s.Duration}
		for at := time.Duration(0); at < s.Duration; at += each {
			now := began.Add(at)
			r.Answers = append(r.Answers, oracle.Answer{Bucket: q.Bucket, Region: "us",
				Node: envoyMark + "1", Sequence: uint64(len(r.Answers) + 1), Cost: 1,
				Outcome: oracle.Admitted, Sent: now, Seen: now, At: now.UnixMicro(),
				Cell: q.Limit.CellOf(now.UnixMicro())})
		}
		return r
	}
	if got := s.ceiling(record(time.Second/200), s.Expect[0]); !got.OK {
		t.Errorf("200 a second: %+v", got)
	}
	if got := s.ceiling(record(time.Second/250), s.Expect[0]); got.OK {
		t.Errorf("250 a second pass for 200: %+v", got)
	}
	if seen, all := record(time.Second).outOfTouch(Expectation{To: s.Duration}); seen+all > 0 {
		t.Errorf("%d of %d decisions of an Envoy say whether regions are in touch", seen, all)
	}
	for want, facts := range map[string]EnvoyFacts{
		"assigned nothing": {Region: "us", Envoy: 1},
		"a fault":          {Region: "us", Envoy: 1, Assigned: 3, Faults: []string{"a fault"}},
		"":                 {Region: "us", Envoy: 1, Assigned: 3},
	} {
		r := Record{Facts: Facts{Envoys: []EnvoyFacts{facts}}}
		if got := r.told(); got.OK != (want == "") || !strings.Contains(got.Got, want) {
			t.Errorf("%+v: %+v", facts, got)
		}
	}
}

// TestScenarioWithEnvoys plays a short scenario with Envoys in front of real nodes.
func TestScenarioWithEnvoys(t *testing.T) {
	t.Parallel()
	s, err := parsed(t, shortEnvoys)
	suite.Must(t, err)
	s.mustBeMet(t)
}
