package scenario

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/suite"
)

const judged = `name: judged
about: A run of two seconds that was made up.
duration: 4s
regions:
  us: {weight: 60}
  eu: {weight: 40}
limits:
  - {name: account, domain: api, key: [account], algorithm: fixed_window, limit: 10, window: 1s}
load:
  - {region: us, limit: account, key: "42", rate: 10}
  - {region: eu, limit: account, key: "42", rate: 10}
steps:
  - {at: 1s, do: cut, between: [us]}
expect:
  - {EXPECT}
`

// began is the edge of a window.
var began = time.Unix(1_000_000, 0)

// seen returns an answer that was sent so long after the beginning, and took a millisecond.
type seen struct {
	at       time.Duration
	region   string
	cost     int64
	outcome  oracle.Outcome
	share    int64
	degraded bool
	alone    bool // decided without a store
	took     time.Duration
}

// record makes a record of a cut that was done and stalled something.
func record(all ...seen) *Record {
	r := &Record{Began: began, Length: 4 * time.Second, Unsent: map[string]int64{}}
	r.Events = []Event{{Step: Step{At: time.Second, Do: "cut", Between: []string{"us"},
		And: []string{"eu"}}, From: time.Second, To: time.Second, Effect: 3}}
	alone := int64(2)
	r.Bounds = map[string]Bounds{"account": {
		{Cause: "local", When: "k of n nodes cut off, here all of them", AtMost: &alone,
			Regions: map[string]int64{"us": 2, "eu": 1}},
		{Cause: "store-lost", When: "any loss", AtMost: &alone},
		{Cause: "allowed", When: "always"},
	}}
	splits := map[string]int64{"us": 6, "eu": 4}
	for i, s := range all {
		a := oracle.Answer{Bucket: "account/42", Region: s.region, Node: "n1",
			Sequence: uint64(i + 1), Cost: max(s.cost, 1), Outcome: s.outcome,
			Sent: began.Add(s.at), Seen: began.Add(s.at + max(s.took, time.Millisecond)),
			Entitlement: splits[s.region], Share: s.share, Degraded: s.degraded}
		switch {
		case s.outcome != oracle.Unknown:
			a.At = a.Sent.UnixMicro()
			a.Cell = a.At / 1_000_000
		case !s.alone:
			a.Sequence = 0
		}
		r.Answers = append(r.Answers, a)
	}
	return r
}

// admitted returns an answer in the middle of a window.
func admitted(second int, region string, cost int64) seen {
	return seen{at: time.Duration(second)*time.Second + 500*time.Millisecond, region: region,
		cost: cost, outcome: oracle.Admitted}
}

func denied(second int, region string, cost int64) seen {
	a := admitted(second, region, cost)
	a.outcome = oracle.Denied
	return a
}

func unknown(second int, cost int64, alone bool) seen {
	a := admitted(second, "us", cost)
	a.outcome, a.alone = oracle.Unknown, alone
	return a
}

func borrowed(at time.Duration) seen {
	return seen{at: at, region: "us", outcome: oracle.Admitted, share: 7}
}

func TestJudge(t *testing.T) {
	outOfTouch := admitted(1, "us", 1)
	outOfTouch.degraded = true
	atEdge := unknown(1, 5, true)
	atEdge.at = time.Second
	slow := admitted(2, "us", 1)
	slow.took = 400 * time.Millisecond
	for _, c := range []struct {
		name, expect string
		record       *Record
		ok           bool
		got          string // part of it
	}{
		{"at the ceiling", "that: ceiling", record(admitted(0, "us", 6), admitted(0, "eu", 4)),
			true, "10 of 10 in 1 cells"},
		{"above it", "that: ceiling", record(admitted(0, "us", 6), admitted(0, "eu", 5)), false,
			"11 of 10"},
		{"nothing to judge", "that: ceiling", record(), false, "0 of 10 in 0 cells"},
		{"nothing but silence", "that: ceiling", record(unknown(0, 1, false)), false,
			"0 of 10 in 0 cells"},
		{"within above", "that: ceiling, above: 1",
			record(admitted(0, "us", 6), admitted(0, "eu", 5)), true, "11 of 10"},
		{"within what is printed",
			"that: ceiling, despite: [{cause: store-lost, when: any loss, region: us}]",
			record(admitted(0, "us", 8), admitted(0, "eu", 4)), true, "12 of 10"},
		{"above what is printed",
			"that: ceiling, despite: [{cause: store-lost, when: any loss, region: us}]",
			record(admitted(0, "us", 8), admitted(0, "eu", 5)), false, "13 of 10"},
		{"not printed", "that: ceiling, despite: [{cause: fire, when: any, region: us}]",
			record(admitted(0, "us", 1)), false, "prints nothing of fire (any)"},
		{"without a bound", "that: ceiling, despite: [{cause: allowed, when: always, region: us}]",
			record(admitted(0, "us", 1)), false, "allowed (always) has no bound"},
		{"without an answer", "that: ceiling", record(admitted(0, "us", 10), unknown(0, 3, false)),
			true, "10 of 10 in 1 cells, 13 if all without an answer was admitted (3 units in the run)"},
		{"decided alone, as printed", "that: ceiling", record(admitted(0, "us", 10),
			unknown(0, 2, true)), true, "12 for certain with what was admitted without a store"},
		{"decided alone, more", "that: ceiling", record(admitted(0, "us", 10), unknown(0, 3, true)),
			false, "13 for certain"},

		{"decided alone at the edge of a window", "that: ceiling", record(admitted(0, "us", 10),
			atEdge), true, "10 of 10"},
		{"more, and decided alone at the edge of a later window", "that: ceiling",
			record(admitted(0, "us", 10), unknown(0, 3, true), atEdge), false, "13 for certain"},
		{"decided alone, more, beside what has no answer", "that: ceiling",
			record(admitted(0, "us", 10), unknown(0, 3, true), unknown(2, 5, false)), false,
			"13 for certain"},

		{"as much as one limiter", "that: admitted, at-least: 100%", record(admitted(0, "us", 10),
			denied(0, "us", 1)), true, "100.0%: 10 units, it admits 10"},
		{"less than one limiter", "that: admitted, at-least: 90%",
			record(admitted(0, "us", 8), denied(0, "eu", 1), denied(0, "eu", 1)), false, "80.0%"},
		{"less, before the span", "that: admitted, at-least: 90%, from: 1s",
			record(denied(0, "eu", 1), admitted(1, "us", 8)), true, "100.0%"},
		{"without an answer it is not admitted", "that: admitted, at-least: 60%",
			record(admitted(0, "us", 5), unknown(0, 5, false)), false,
			"50.0%: 5 units, it admits 10"},
		{"decided alone it is", "that: admitted, at-least: 100%",
			record(admitted(0, "us", 5), unknown(0, 5, true)), true, "100.0%: 10 units"},
		{"nothing asked for", "that: admitted, at-least: 1%", record(), false,
			"nothing was asked for"},

		{"at its split", "that: split, region: us, from: 1s, to: 3s",
			record(admitted(0, "us", 9), admitted(1, "us", 6), admitted(2, "us", 2)), true,
			"6 in the fullest of 2 windows, 66% on average"},
		{"above its split", "that: split, region: us, from: 1s, to: 3s",
			record(admitted(1, "us", 7)), false, "7 in the fullest"},
		{"above its split by what it admits without a store", "that: split, region: us, from: 1s, to: 3s",
			record(admitted(1, "us", 6), unknown(1, 2, true)), true, "8 in the fullest"},
		{"above that too", "that: split, region: us, from: 1s, to: 3s",
			record(admitted(1, "us", 7), unknown(1, 2, true)), false, "9 in the fullest"},
		{"below its split", "that: split, region: us, from: 1s, to: 3s, at-least: 90%",
			record(admitted(1, "us", 6), admitted(2, "us", 3)), false, "75% on average"},
		{"nothing to hold to the split", "that: split, region: us, from: 1s, to: 3s",
			record(admitted(1, "eu", 2), unknown(1, 2, false)), false, "no decision"},
		{"no whole window", "that: split, region: us, from: 1200ms, to: 1900ms",
			record(admitted(1, "us", 6)), false, "no whole window"},

		{"out of touch", "that: degraded, region: us, from: 1s, to: 2s", record(outOfTouch), true,
			"1 of 1 decisions"},
		{"not all of a region out of touch", "that: degraded, region: us",
			record(outOfTouch, admitted(2, "us", 1)), false, "1 of 2 decisions"},
		{"some out of touch", "that: degraded", record(outOfTouch, admitted(2, "eu", 1)), true,
			"1 of 2 decisions"},
		{"sent before the end, and decided after", "that: degraded, region: us, from: 1s, to: 2s", record(outOfTouch,
			seen{at: 1900 * time.Millisecond, region: "us", outcome: oracle.Admitted, took: 200 * time.Millisecond}), true,
			"1 of 1 decisions"},
		{"out of touch elsewhere", "that: degraded, region: eu", record(outOfTouch), false,
			"0 of 0 decisions"},
		{"out of touch later", "that: degraded, from: 2s", record(outOfTouch), false, "0 of 0"},
		{"in touch", "that: in-touch, from: 2s", record(outOfTouch, admitted(2, "us", 1),
			admitted(2, "eu", 1)), true, "0 of 2"},
		{"a region that decides nothing", "that: in-touch, from: 2s", record(admitted(2, "us", 1)),
			false, "0 of 1 decisions, none in eu"},
		{"not in touch", "that: in-touch", record(outOfTouch, admitted(2, "us", 1)), false,
			"1 of 2"},

		{"borrows in time", "that: borrows, region: us, after: 1s, within: 2s",
			record(borrowed(500*time.Millisecond), borrowed(2*time.Second)), true, "after 1s"},
		{"borrows late", "that: borrows, region: us, after: 1s, within: 500ms",
			record(borrowed(2 * time.Second)), false, "after 1s"},
		{"never borrows", "that: borrows, region: us, after: 1s, within: 1s",
			record(admitted(2, "us", 1)), false, "never"},

		{"fast", "that: answers, within: 500ms", record(slow, admitted(0, "us", 1)), true,
			"400ms of 2"},
		{"slow", "that: answers, within: 300ms", record(slow, admitted(0, "us", 1)), false,
			"400ms of 2"},
		{"half of them fast", "that: answers, within: 300ms, percent: 50",
			record(slow, admitted(0, "us", 1)), true, "1ms of 2, the longest 400ms"},
		{"some without an answer", "that: answers, within: 300ms",
			record(admitted(0, "us", 1), unknown(0, 1, false)), false, "no answer to 1 of 2"},
		{"few without an answer", "that: answers, within: 300ms, percent: 50",
			record(admitted(0, "us", 1), unknown(0, 1, false)), true,
			"1ms of 2, the longest 1ms, no answer to 1"},
		{"no answers", "that: answers, within: 1s", record(), false, "nothing was asked for"},

		{"ready again", "that: ready, region: us, after: 1s, within: 1s",
			health(record(), false, true), true, "after 1s"},
		{"ready late", "that: ready, region: us, after: 1s, within: 500ms",
			health(record(), false, true), false, "after 1s"},
		{"ready all along", "that: ready, region: us, after: 1s, within: 1ms",
			health(record(), true, true), true, "after 0s"},
		{"never ready", "that: ready, region: us, after: 1s, within: 3s",
			health(record(), false, false), false, "n1 never"},
		{"nobody looked", "that: alive", record(), false, "nobody looked"},
		{"alive", "that: alive", health(record(), true), true, "0 ends"},
		{"dead", "that: alive", ended(record()), false, "1 end; us/n1 at 1s: out of memory"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := Parse("judged.yaml", []byte(strings.Replace(judged, "EXPECT", c.expect, 1)))
			suite.Must(t, err)
			results := s.Judge(c.record)
			if first := results[0]; !first.OK {
				t.Errorf("the step was done: %+v", first)
			}
			if got := results[1]; got.OK != c.ok || !strings.Contains(got.Got, c.got) {
				t.Errorf("ok is %v, got %q (want %s); should be %v, %q", got.OK, got.Got, got.Want,
					c.ok, c.got)
			}
			if OK(results) != c.ok {
				t.Errorf("all is ok: %v", !c.ok)
			}
		})
	}
}

// health makes the node of us ready or not, at the beginning and after two seconds.
func health(r *Record, ready ...bool) *Record {
	for i, so := range ready {
		r.Health = append(r.Health, Health{At: began.Add(time.Duration(2*i) * time.Second),
			Region: "us", Node: 1, Ready: so})
	}
	return r
}

func ended(r *Record) *Record {
	r.Health = append(r.Health, Health{At: began.Add(time.Second), Region: "us", Node: 1,
		Ended: true, Why: "out of memory"})
	return r
}

func TestStepsThatWereNotDone(t *testing.T) {
	s, err := Parse("judged.yaml", []byte(strings.Replace(judged, "EXPECT", "that: alive", 1)))
	suite.Must(t, err)
	failed, idle, missing := record(), record(), record()
	failed.Events[0].Err = errors.New("no way")
	idle.Events[0].Effect = 0
	missing.Events = nil
	for name, c := range map[string]struct {
		record *Record
		want   string
	}{
		"failed":  {failed, "cut at 1s: no way"},
		"idle":    {idle, "cut at 1s: nothing that went between these regions was lost or held up by it"},
		"missing": {missing, "0 steps"},
	} {
		if got := s.Judge(c.record)[0]; got.OK || !strings.Contains(got.Got, c.want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// A limit that counts by the calendar is judged and drawn by its days.
func TestACalendarIsJudgedByItsDays(t *testing.T) {
	text := strings.Replace(strings.Replace(judged, "window: 1s",
		"window: day, timezone: America/New_York", 1), "EXPECT", "that: ceiling", 1)
	s, err := Parse("judged.yaml", []byte(text))
	suite.Must(t, err)
	r := record(admitted(0, "us", 6), admitted(3, "eu", 4))
	r.Began = time.Date(2026, 11, 1, 3, 59, 58, 0, time.UTC) // midnight in New York comes in between
	for i := range r.Answers {
		a := &r.Answers[i]
		a.Sent = a.Sent.Add(r.Began.Sub(began))
		a.Seen, a.At, a.Cell = a.Sent.Add(time.Millisecond), a.Sent.UnixMicro(), int64(739_920+i)
	}
	if all := s.Judge(r); !OK(all) {
		t.Errorf("%+v", all)
	}
	cells := s.Report(r, s.Judge(r), "", "").Limits[0].Cells
	if len(cells) != 2 || cells[0].From != 2*time.Second-24*time.Hour || cells[0].Length != 24*time.Hour ||
		cells[1].Length != 25*time.Hour || cells[1].Admitted[1] != 4 {
		t.Errorf("the windows are %+v", cells)
	}
}

// TestReport fills a page from a record.
func TestReport(t *testing.T) {
	s, err := Parse("judged.yaml", []byte(strings.Replace(judged, "EXPECT", "that: ceiling", 1)))
	suite.Must(t, err)
	r := record(admitted(0, "us", 6), admitted(0, "eu", 4), denied(1, "us", 2),
		unknown(2, 3, false), unknown(3, 2, true))
	r.Unsent["eu"] = 5
	run := s.Report(r, s.Judge(r), "quotad chaos run judged", "a build")
	if len(run.Limits) != 1 || !run.OK || len(run.Steps) != 1 || len(run.Notes) != 1 ||
		len(run.Expectations) != 2 {
		t.Fatalf("the page is filled with %+v", run)
	}
	l := run.Limits[0]
	r.Shed = map[string]int64{"us": 4}
	if again := s.Report(r, s.Judge(r), "", ""); len(again.Notes) != 2 ||
		!strings.Contains(again.Notes[0], "4 requests to us fell due") {
		t.Errorf("the notes are %q", again.Notes)
	}
	if l.Slots[0].Admitted[0] != 6 || l.Slots[0].Admitted[1] != 4 || l.Slots[1].Denied[0] != 2 ||
		l.Slots[2].Unknown[0] != 3 {
		t.Errorf("the slots are %+v", l.Slots)
	}
	if l.Cells[0].Admitted[0] != 6 || l.Cells[2].Unknown != 3 || l.Cells[3].Unknown != 0 || l.Cells[3].Admitted[0] != 2 || l.Max != 10 {
		t.Errorf("the windows are %+v, at most %d", l.Cells, l.Max)
	}
	if b := run.Bands; len(b) != 1 || b[0].From != time.Second || b[0].To != r.Length {
		t.Errorf("a cut without a heal lasts to the end: %+v", b)
	}
}

// TestSlotsAreWindows: answers that come after their window has ended count for that window on the
// page, so that no bar stands above a limit that held.
func TestSlotsAreWindows(t *testing.T) {
	s, err := Parse("judged.yaml", []byte(strings.Replace(judged, "EXPECT", "that: ceiling", 1)))
	suite.Must(t, err)
	r := record(admitted(0, "us", 10), admitted(1, "us", 10))
	r.Answers[0].Sent = r.Answers[1].Sent // by the callers' clocks all twenty were sent in one second
	r.Began = r.Began.Add(-300 * time.Millisecond)
	l := s.Report(r, s.Judge(r), "", "").Limits[0]
	most := int64(0)
	for _, slot := range l.Slots {
		most = max(most, slot.Admitted[0])
	}
	if most != 10 || l.Slots[0].At != -700*time.Millisecond {
		t.Errorf("at most %d in a slot, want 10: %+v", most, l.Slots)
	}
}
