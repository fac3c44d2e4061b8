package panics

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/bubble"
)

func fall(c *Counter, where string, v any) (reached bool) {
	defer c.Recover(where)
	if v != nil {
		panic(v)
	}
	return true
}

// TestRecover: a panic ends the function that defers Recover and nothing else; all are counted, one
// a minute and place is logged, with its stack and without what could write to a terminal.
func TestRecover(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := New(slog.New(slog.NewTextHandler(&log, nil)))
		if !fall(c, "here", nil) || len(c.Counts()) != 0 {
			t.Error("counted what did not happen")
		}
		for range 5 {
			if fall(c, "here", "bad \x1b[31m"+strings.Repeat("long", 1000)) {
				t.Error("went on after a panic")
			}
		}
		fall(c, "there", 7)
		if want := map[string]uint64{"here": 5, "there": 1}; !maps.Equal(c.Counts(), want) {
			t.Errorf("counted %v, want %v", c.Counts(), want)
		}
		text := log.String()
		if strings.Count(text, "recovered from a panic") != 2 || !strings.Contains(text, "panics.fall") {
			t.Errorf("logged:\n%s", text)
		}
		if strings.Contains(text, "\x1b") || len(text) > 2*(largestStack+largestValue)*2 {
			t.Errorf("the log has %d bytes, or escape codes", len(text))
		}
		time.Sleep(logEvery)
		fall(c, "here", "again")
		if strings.Count(log.String(), "recovered from a panic") != 3 {
			t.Error("not logged again after a minute")
		}
	})
}

// TestNilRecovers: code that was given no Counter goes on, too.
func TestNilRecovers(t *testing.T) {
	var c *Counter
	if fall(c, "here", "bad") || len(c.Counts()) != 0 {
		t.Error("went on after a panic, or counted it")
	}
}
