package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

const (
	// maxFailed is the part of a subject's requests that may fail or be denied.
	maxFailed = 0.01
	// maxOthers is how many processors may be busy with other work.
	maxOthers = 0.1
)

// Report is what a run found, as -o json has it.
type Report struct {
	OK         bool            `json:"ok"`
	Build      json.RawMessage `json:"build"` // as quotad version -o json tells it
	OS         string          `json:"os"`
	Arch       string          `json:"arch"`
	Processors int             `json:"processors"`
	Redis      string          `json:"redis_version"`
	// Driven is the address of a node that ran already.
	Driven string `json:"driven,omitempty"`
	// Compared is the address of a compared server.
	Compared string `json:"compared,omitempty"`
	// ComparedTellsLimit reports whether its answers tell a limit; nil: there is none.
	ComparedTellsLimit *bool  `json:"compared_tells_limit,omitempty"`
	Algorithm          string `json:"algorithm"`
	// Consistency and Limits are those of the document; nil: a node that ran already has its own.
	Consistency  *string   `json:"consistency"`
	Limits       *int      `json:"limits"`
	Callers      int       `json:"callers"`
	Connections  int       `json:"connections"`
	Keys         string    `json:"keys"`
	Among        int       `json:"among"`
	Batch        int       `json:"batch"`
	HTTP         bool      `json:"http"`
	Rounds       int       `json:"rounds"`
	RoundSeconds float64   `json:"round_seconds"`
	Subjects     []figures `json:"subjects"`
	// OtherWork is how many processors were busy with other work, on average; nil: not known.
	OtherWork *float64 `json:"other_work_processors"`
	Busy      bool     `json:"busy"` // OtherWork is above maxOthers
	Problems  []string `json:"problems"`

	compare Compare
	version string // as quotad version tells it
}

func (b *Bench) report(s *subjects) *Report {
	r := &Report{Build: s.build, version: s.version, OS: runtime.GOOS, Arch: runtime.GOARCH,
		Processors: runtime.NumCPU(), Redis: s.redisVersion, Driven: b.GRPC,
		Algorithm: s.algorithm, Callers: b.Callers,
		Connections: b.connections(), Keys: b.Keys, Among: b.Among, Batch: b.Batch,
		HTTP: b.HTTP, Rounds: b.Rounds, RoundSeconds: b.Duration.Seconds(), Problems: []string{},
		Compared: b.Compare.Address, compare: b.Compare}
	if b.GRPC == "" {
		r.Consistency, r.Limits = &b.Consistency, &b.Limits
	}
	if b.Compare.Address != "" {
		r.ComparedTellsLimit = &s.namesLimit
	}
	floor := s.named("floor").rounds
	for _, one := range s.all {
		f := figuresOf(one, floor)
		r.Subjects = append(r.Subjects, f)
		if problem := f.problem(); problem != "" {
			r.Problems = append(r.Problems, problem)
		}
	}
	r.OtherWork = otherWork(s.all)
	r.Busy = r.OtherWork != nil && *r.OtherWork > maxOthers
	r.OK = len(r.Problems) == 0
	return r
}

func (s *subjects) named(name string) *subject {
	for _, one := range s.all {
		if one.name == name {
			return one
		}
	}
	return &subject{}
}

// otherWork returns how many processors were busy with other work in all rounds, on average.
func otherWork(all []*subject) *float64 {
	var others, lasted time.Duration
	for _, s := range all {
		for _, r := range s.rounds {
			if r.others != nil {
				others, lasted = others+*r.others, lasted+r.lasted
			}
		}
	}
	if lasted == 0 {
		return nil
	}
	processors := others.Seconds() / lasted.Seconds()
	return &processors
}

// problem says why the figures mean nothing, or returns an empty text.
func (f *figures) problem() string {
	bad := f.Refused + f.Late + f.Failed + f.Denied
	switch {
	case f.Decided == 0 && bad == 0:
		return f.Name + ": nothing was decided; give a longer --duration"
	case f.asked == 0 || float64(bad) <= maxFailed*float64(f.asked):
		return ""
	}
	text := fmt.Sprintf("%s: %.1f %% of %d requests were refused (%d), late (%d), failed (%d) or were denied (%d)", f.Name,
		100*float64(bad)/float64(f.asked), f.asked, f.Refused, f.Late, f.Failed, f.Denied)
	if f.FirstError != "" {
		text += ", the first with: " + plain(f.FirstError)
	}
	return text + "; give fewer --callers or a smaller --batch, or a server " +
		"that runs already a larger limit"
}

// Table writes the report for people.
func (r *Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s, %s/%s, %s, Redis %s\n", r.version, r.OS, r.Arch,
		counted(r.Processors, "processor"), r.Redis)
	if r.Driven != "" {
		fmt.Fprintf(t, "quotad runs at %s\n", r.Driven)
	}
	if r.Compared != "" {
		fmt.Fprintf(t, "compared runs at %s\n", r.Compared)
	}
	fmt.Fprintf(t, "%s, %s on %s, %s, %s a call%s, %s of %s\n\n", r.limited(),
		counted(r.Callers, "caller"), counted(r.Connections, "connection"),
		r.spread(), counted(r.Batch, "decision"), r.way(), counted(r.Rounds, "round"),
		span(time.Duration(r.RoundSeconds*float64(time.Second))))
	fmt.Fprint(t, "\tdecisions/s\tp50 us\tp99 us\tp99.9 us\tserver CPU us\tRedis CPU us",
		"\tscripts\tallocations\ttimes floor\trefused\tlate\terrors\tdenied\n")
	for i := range r.Subjects {
		f := &r.Subjects[i]
		fmt.Fprintf(t, "%s\t%.0f\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\n", f.Name, f.PerSecond,
			number(f.P50, 0), number(f.P99, 0), number(f.P999, 0), number(f.ServerCPU, 1),
			number(f.RedisCPU, 1), number(f.Scripts, 3), number(f.Mallocs, 1),
			number(f.TimesFloor, 2), f.Refused, f.Late, f.Failed, f.Denied)
	}
	for _, note := range r.notes() {
		fmt.Fprintf(t, "\n%s\n", note)
	}
	return t.Flush()
}

// limited says what limits the requests meet.
func (r *Report) limited() string {
	text := plain(r.Algorithm)
	if r.Consistency != nil && *r.Consistency != exact {
		text += ", " + *r.Consistency
	}
	if r.Limits != nil && *r.Limits > 1 {
		text += fmt.Sprintf(", %d limits on each request", *r.Limits)
	}
	return text
}

// way says how calls are made, if not one by one or by CheckBatch.
func (r *Report) way() string {
	if r.HTTP {
		return " over HTTP"
	}
	return ""
}

// spread says how the requests were spread over keys.
func (r *Report) spread() string {
	if r.Keys == oneKey {
		return "1 key"
	}
	return fmt.Sprintf("%s, %s", counted(r.Among, "key"), r.Keys)
}

// number writes a figure, or a dash if it is not known.
func number(v *float64, decimals int) string {
	if v == nil {
		return "-"
	}
	return strconv.FormatFloat(*v, 'f', decimals, 64)
}

// notes returns what is to be said below the table.
func (r *Report) notes() (all []string) {
	for i := range r.Subjects {
		if f := &r.Subjects[i]; f.TimesFloor == nil && f.Decided > 0 {
			all = append(all, fmt.Sprintf("not all processor times of %s are known: %s",
				f.Name, r.whyUnknown(f)))
		}
	}
	if r.ComparedTellsLimit != nil && !*r.ComparedTellsLimit {
		all = append(all, r.compare.note())
	}
	if r.Busy {
		all = append(all, fmt.Sprintf("busy: other work kept %.2f processors busy meanwhile; "+
			"only ratios mean something", *r.OtherWork))
	}
	if !r.OK {
		all = append(all, "not ok: "+strings.Join(r.Problems, "\nnot ok: "))
	}
	return all
}

// whyUnknown says why a subject's processor times are not all known.
func (r *Report) whyUnknown(f *figures) string {
	switch {
	case !procfs.known():
		return "this system has no /proc"
	case f.Name == compared:
		return "name the processes of the server, and of its Redis if it has one, with --compare-pid"
	case r.Driven != "":
		return "name the processes of the node and of its Redis with --pid"
	}
	return "they did not run"
}
