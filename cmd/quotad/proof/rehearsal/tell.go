package rehearsal

import (
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/quotad/quotad/chaos/real/scenario"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
)

// teller prints the progress of a rehearsal. Safe for concurrent use.
type teller struct {
	quiet bool
	mu    sync.Mutex
	out   io.Writer
	start time.Time
}

func (t *teller) line(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.quiet {
		fmt.Fprintf(t.out, format+"\n", args...)
	}
}

func (t *teller) begin(r *Rehearsal) {
	t.line("%s: %s", r.Name, r.About)
	t.line("starting %s, seed %d", show.Counted(len(r.Regions), "region"), r.Seed)
	t.start = time.Now()
}

func (t *teller) started(r *Rehearsal) {
	t.line("all regions are in touch after %s; %s of load begin",
		show.Span(time.Since(t.start).Round(100*time.Millisecond)), show.Span(r.Duration))
}

func (t *teller) step(s scenario.Step) { t.line("%6.1fs  %s", s.At.Seconds(), s) }

// done reports steps that failed, had an outcome, or took more than a second.
func (t *teller) done(e scenario.Event) {
	took := e.To - e.From
	switch {
	case e.Err != nil:
		t.line("%6.1fs  %s failed: %s", e.To.Seconds(), e.Step.Do, e.Why())
	case e.Outcome != "":
		t.line("%6.1fs  %s done: %s", e.To.Seconds(), e.Step.Do, e.Outcome)
	case took > time.Second:
		t.line("%6.1fs  %s done", e.To.Seconds(), e.Step.Do)
	}
}

// rehearsed is the outcome of a rehearsal as JSON.
type rehearsed struct {
	Scenario string `json:"scenario"`
	Seed     uint64 `json:"seed"`
	OK       bool   `json:"ok"`
	Answers  int    `json:"answers"`
	// Unsent counts the requests that no node accepted, by region.
	Unsent map[string]int64 `json:"unsent"`
	// Shed counts the requests that were due while too many waited for an answer, by region.
	Shed map[string]int64 `json:"shed"`
	// Behind counts the requests that this machine was too slow to send, by region.
	Behind       map[string]int64  `json:"behind"`
	Expectations []scenario.Result `json:"expectations"`
}

// tell prints the outcome. The error carries the exit code if an expectation was not met.
func (r *Rehearsal) tell(out io.Writer, record *scenario.Record, results []scenario.Result) error {
	ok := scenario.OK(results)
	if r.Output == "json" {
		if err := show.JSON(out, rehearsed{r.Name, r.Seed, ok, len(record.Answers), record.Unsent,
			record.Shed, record.Behind, results}); err != nil {
			return err
		}
	} else if err := r.tellTable(out, record, results, ok); err != nil {
		return err
	}
	if !ok {
		return exit.Silently(exit.Broken)
	}
	return nil
}

func (r *Rehearsal) tellTable(out io.Writer, record *scenario.Record, results []scenario.Result,
	ok bool) error {
	fmt.Fprintf(out, "\n%d requests sent, %d that no node accepted\n", len(record.Answers),
		sum(record.Unsent))
	if n := sum(record.Shed); n > 0 {
		fmt.Fprintf(out, "%d more fell due while too many waited for an answer, and were not sent\n", n)
	}
	if n := sum(record.Behind); n > 0 {
		fmt.Fprintf(out, "%d more were not sent in time: this machine was too slow\n", n)
	}
	fmt.Fprintln(out)
	t := show.Table(out)
	fmt.Fprintln(t, "\tEXPECTED\tWANT\tGOT")
	for _, one := range results {
		word := "met"
		if !one.OK {
			word = "NOT MET"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", word, one.Text, one.Want, one.Got)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	verdict := "ok: all that was expected was met"
	if !ok {
		verdict = "not ok: see above; play it again with " + r.Command
	}
	_, err := fmt.Fprintf(out, "\n%s\n", verdict)
	return err
}

// sum adds up counts by region.
func sum(counts map[string]int64) (all int64) {
	for _, n := range counts {
		all += n
	}
	return all
}
