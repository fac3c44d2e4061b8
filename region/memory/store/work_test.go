package store

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// maxSteps is how many steps a script may take, whatever its state and input. A step is one pass of
// a loop, a call of one of our functions, a command, or 64 bytes that a command returns; work on a
// text is three steps. A step takes 0.05 to 0.2 us on an idle redis-server.
const maxSteps = 6000

var (
	loops     = regexp.MustCompile(`(?m)\b(do|repeat)$`)
	inline    = regexp.MustCompile(`(?m)^( *(?:for|while) .*?) do (.*)$`)
	texts     = regexp.MustCompile(`(string\.\w+|table\.concat)\(`)
	functions = regexp.MustCompile(`(?m)(function ?[\w.:]*\([^()]*\))`)
)

// counted returns a script that counts its steps, and answers with their number.
func counted(source string) string {
	source = inline.ReplaceAllString(source, "$1 do STEP() $2")
	source = loops.ReplaceAllString(source, "$1 STEP()")
	source = functions.ReplaceAllString(source, "$1 STEP() ")
	source = texts.ReplaceAllString(source, "TEXT($1, ")
	const prelude = `
local steps, call, pcalled = 0, redis.call, redis.pcall
local function STEP() steps = steps + 1 end
local function TEXT(work, ...)
  steps = steps + 3
  return work(...)
end
local function COUNTED(call, ...)
  local reply = call(...)
  local texts = type(reply) == 'table' and reply or {reply}
  steps = steps + 1
  for _, text in ipairs(texts) do if type(text) == 'string' then steps = steps + #text / 64 end end
  return reply
end
local function body()
`
	source = strings.NewReplacer("redis.call(", "COUNTED(call, ", "redis.pcall(",
		"COUNTED(pcalled, ").Replace(source)
	return prelude + source +
		"\nend\nlocal reply = body()\nreturn {reply[1], reply[2] or '', reply[3] or '', string.format('%.0f', steps)}"
}

// steps runs a script once and returns how many steps it took; over says that the cell of the call
// had ended by then.
func (st *stage) steps(script algorithms.Script, c scripted) (steps int, over bool) {
	args, keys := st.written(c)
	reply, err := clientOf(st.Store).Eval(context.Background(), counted(script.Source), keys,
		args...).Slice()
	if err == nil && fmt.Sprint(reply[0]) == fmt.Sprint(int64(algorithms.StatusFinished)) {
		return 0, true
	}
	if err == nil && script.Name == algorithms.DecideScript.Name {
		reply = reply[2:] // the time comes first; 13 to 15: a single item, see lean.lua
		if status := fmt.Sprint(reply[0]); slices.Contains([]string{"13", "14", "15"}, status) {
			reply[0] = 0
		}
	}
	if err != nil || fmt.Sprint(reply[0]) != "0" {
		st.b.Fatalf("%s: %v, %v", script.Name, reply, err)
	}
	n, err := strconv.Atoi(fmt.Sprint(reply[len(reply)-1]))
	if err != nil {
		st.b.Fatal(err)
	}
	return n, false
}

// most returns the most steps that a script takes at its worst. If a cell ends meanwhile, it tries
// again.
func (st *stage) most(w worst, kind algorithms.Kind) (steps int) {
	for range 20 {
		steps = 0
		ended := false
		w.each(st, kind, 1, func(c scripted) {
			n, over := st.steps(w.script, c)
			steps, ended = max(steps, n), ended || over
		})
		if !ended {
			return steps
		}
	}
	st.b.Fatalf("%s, %s: each time a cell ended", w.body, kind)
	return 0
}

// TestScriptsAreBounded: no script takes more than maxSteps, whatever the history of its bucket and
// the call.
func TestScriptsAreBounded(t *testing.T) {
	suite.OneGoroutine(t)
	st := &stage{b: t, Store: node(t, fixtures.Process(t), first)}
	decide(t, st.Store, charge("first", 10, 1))
	for _, w := range worsts {
		for _, kind := range algorithms.Kinds {
			if !w.concerns(kind) {
				continue
			}
			steps := st.most(w, kind)
			t.Logf("%-32s %-24s %5d steps", w.body, kind, steps)
			if steps > maxSteps {
				t.Errorf("%s, %s: %d steps, more than %d", w.body, kind, steps, maxSteps)
			}
			if steps < 20 {
				t.Errorf("%s, %s: %d steps: nothing is counted", w.body, kind, steps)
			}
		}
	}
}

// A row of a one-minute cell costs the embedded server no more than one of any other cell. (Cell
// numbers below 2^26 are indices up to which its Lua fills an array.)
func TestRowsCostTheEmbeddedServerLittle(t *testing.T) {
	server := kinds["embedded"].start(t)
	s := node(t, server, first)
	for _, kind := range algorithms.Kinds {
		const window = 60_000_000
		of := algorithms.Terms{Kind: kind, Window: 10 * window, Cell: algorithms.CellLength(kind,
			10*window), Tick: 1, Entitlement: 100}
		if kind.Bucket() {
			of.Burst = 100
		}
		d := decide(t, s, on(string(kind), of, 1))
		lend(t, s, algorithms.Lend{Fence: under(epoch),
			Target: algorithms.Target{Key: BucketKey(Whole, string(kind)), Terms: of},
			Debit: algorithms.Debit{Peer: "us",
				Cell: d.Buckets[0].Cell, Lent: 1, Cap: 100}})
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		decide(t, s, on(string(kind), of, 1))
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; used > 20<<20 {
			t.Errorf("%s: a decision took %d MB", kind, used>>20)
		}
	}
}
