package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// board is a stage that answers at once and records what it was asked.
type board struct {
	impossible string
	fails      string
	takes      time.Duration // of each step
	slow       time.Duration // every answer

	mu    sync.Mutex
	done  []string
	turns map[string][]uint64
}

func (b *board) Can(s Step) error {
	if s.Do == b.impossible {
		return ErrNotStarted
	}
	return nil
}

func (b *board) Do(ctx context.Context, s Step) (string, error) {
	b.mu.Lock()
	b.done = append(b.done, s.Do)
	b.mu.Unlock()
	if !Sleep(ctx, b.takes) {
		return "", ctx.Err()
	}
	if s.Do == b.fails {
		return "", errors.New("no way")
	}
	return "some outcome", nil
}

func (b *board) Ask(ctx context.Context, region string, turn uint64, q Question) (oracle.Answer,
	bool) {
	Sleep(ctx, b.slow)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.turns == nil {
		b.turns = map[string][]uint64{}
	}
	b.turns[region] = append(b.turns[region], turn)
	if region == "eu" && turn == 0 {
		return oracle.Answer{}, false // not sent
	}
	now := time.Now()
	return oracle.Answer{Bucket: q.Bucket, Region: region, Sequence: turn + 1, Cost: q.Cost,
		Outcome: oracle.Denied, Sent: now, Seen: now,
		At: now.UnixMicro(), Cell: q.Limit.CellOf(now.UnixMicro())}, true
}

func (b *board) Watch(ctx context.Context, note func(Health)) {
	note(Health{Region: "us", Node: 1, Ready: true})
	<-ctx.Done()
}

func (*board) Effect(s Step) int64 { return int64(len(s.Do)) }

func (*board) Facts() Facts { return Facts{} }

// played is a scenario whose load begins with a step.
func played(t *testing.T) *Scenario {
	t.Helper()
	s, err := Parse("played.yaml", []byte(`name: played
about: It is played on a board.
duration: 10s
regions:
  us: {weight: 1}
  eu: {weight: 1}
limits:
  - {name: account, domain: api, key: [account], match: {plan: pro}, algorithm: fixed_window, limit: 10, window: 1s}
load:
  - {region: us, limit: account, key: "42", rate: 0, cost: 2}
  - {region: eu, limit: account, key: "42", rate: 10, from: 1s, to: 3s}
steps:
  - {at: 2s, do: load, region: us, limit: account, rate: 20}
  - {at: 3s, do: cut, between: [us]}
  - {at: 4s, do: heal}
expect:
  - {that: ceiling}
`))
	suite.Must(t, err)
	return s
}

func TestPlay(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		b := &board{takes: 3 * time.Second}
		var told []string
		var mu sync.Mutex
		tell := func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, fmt.Sprintf(format, args...))
		}
		r, err := played(t).Play(t.Context(), b, Options{Seed: 1,
			Began: func(s Step) { tell("begin %s", s.Do) },
			Done:  func(e Event) { tell("done %s %s", e.Step.Do, e.To) }})
		suite.Must(t, err)
		if want := "begin load, done load 2s, begin cut, begin heal, done cut 6s, done heal 7s"; strings.Join(told, ", ") != want {
			t.Errorf("told %v, want %s", told, want)
		}
		if len(r.Events) != 3 || r.Events[1].Outcome != "some outcome" || r.Events[1].Effect != 3 ||
			r.Events[2].Effect != 0 || len(r.Health) != 1 {
			t.Errorf("recorded %+v, %+v, %+v", r.Events, r.Facts, r.Health)
		}
		var first, last time.Duration
		units := map[string]int64{}
		for _, a := range r.Answers {
			if a.Region == "us" && units["us"] == 0 {
				first = r.sent(a)
			}
			units[a.Region] += a.Cost
			last = max(last, r.sent(a))
		}
		// 20 units a second over 8 s, give or take one request; 10 over 2 s.
		if units["us"] < 156 || units["us"] > 164 || units["eu"]+r.Unsent["eu"] < 19 ||
			r.Unsent["eu"] != 1 {
			t.Errorf("asked for %v, and %v not sent", units, r.Unsent)
		}
		if first < 2*time.Second || last > 10*time.Second {
			t.Errorf("load from %v to %v", first, last)
		}
		if turns := b.turns["us"]; !slices.Contains(turns, 0) || !slices.Contains(turns, 1) {
			t.Errorf("the turns are %v", turns)
		}
	})
}

func TestPlayRecordsWhatFails(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, err := played(t).Play(t.Context(), &board{fails: "cut"}, Options{})
		if err != nil || r.Events[1].Err == nil || r.Events[2].Err != nil {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

func TestPlayDoesNothingWhereAStepIsImpossible(t *testing.T) {
	b := &board{impossible: "heal"}
	_, err := played(t).Play(t.Context(), b, Options{})
	if !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(),
		"played.yaml:15:5: heal: between all regions: not possible against") {
		t.Errorf("the error is %v", err)
	}
	if len(b.done) > 0 || len(slices.Collect(maps.Keys(b.turns))) > 0 {
		t.Errorf("done: %v, asked: %v", b.done, b.turns)
	}
}

func TestPlayIsEndedEarly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 3500*time.Millisecond)
		defer cancel()
		began := time.Now()
		_, err := played(t).Play(ctx, &board{takes: time.Minute}, Options{})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3500*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(began))
		}
	})
}

// TestAMovedClockIsJudgedByItsOwnTime: store times may be as far from the judge's clock as steps
// move them, but no further.
func TestAMovedClockIsJudgedByItsOwnTime(t *testing.T) {
	s, err := Parse("clock.yaml",
		[]byte(strings.NewReplacer("do: cut, between: [us]",
			"do: clock, region: us, by: -3s}\n  - {at: 4s, do: clock, region: us, by: 5s",
			"EXPECT", "that: alive").Replace(judged)))
	suite.Must(t, err)
	if got := s.Watched()[0].judged().ClockSlack; got != clockSlack+3*time.Second {
		t.Errorf("a slack of %v", got)
	}
}

// TestLoadThatDoesNotFit: requests are counted that fall due while the maximum number of requests
// waits for answers.
func TestLoadThatDoesNotFit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s, err := Parse("shed.yaml",
			[]byte(strings.NewReplacer("rate: 10}\n  - {region: eu", "rate: 1000}\n  - {region: eu",
				"EXPECT", "that: alive").Replace(judged)))
		suite.Must(t, err)
		r, err := s.Play(t.Context(), &board{slow: time.Second}, Options{})
		if err != nil || r.Shed["us"] < 2000 || r.Shed["eu"] != 0 {
			t.Errorf("%v, shed are %v", err, r.Shed)
		}
	})
}
