package limits

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
)

func diffCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what a newer limits document changes, and what the change costs meanwhile",
		Long: `diff shows what a newer limits document changes, limit by limit. Where the terms of a limit change, its numbers or its
split, each region has the smaller of its old and new part from the time it knows the new document. That ends, at once or
some windows later, when the regions that get less have acknowledged the new document, and a majority of all regions.
diff says who they are and how long it takes then. A limit with another algorithm, window, key, name or match, or one that
gains or loses assign, is one removed and one added: both are charged until what was used of the old one weighs no more.
A limit that is removed stays known as long: a document that has it again changes its old terms. Of one that is added
no region uses more than an even part until all regions have acknowledged the document.

Exit codes: 0 shown, 2 a document is invalid or the newer one cannot follow the older.`,
		Example:           "  quotad limits diff limits.yaml limits-new.yaml",
		Args:              oldAndNew,
		ValidArgsFunction: command.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == standardInput && args[1] == standardInput { // which can be read once
				return exit.Usage(fmt.Errorf(
					"standard input (%s) is given twice: name a file for one of the two", standardInput))
			}
			var both [2]*policy.Document
			for i, file := range args {
				var err error
				if both[i], err = Load(file); err != nil {
					return err
				}
			}
			d, err := differ(both[0], both[1])
			if err != nil {
				return exit.Usage(fmt.Errorf("%s cannot follow %s: %w", Path(args[1]),
					Path(args[0]), err))
			}
			return show.Result(cmd.OutOrStdout(), output, d, d.print)
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

func oldAndNew(cmd *cobra.Command, args []string) error {
	if len(args) != 2 {
		return exit.Usage(fmt.Errorf("name the older and the newer limits document, as in %s limits.yaml limits-new.yaml",
			cmd.CommandPath()))
	}
	return nil
}

// difference is what a newer document changes, as JSON or for people.
type difference struct {
	From    string         `json:"from"` // epochs
	To      string         `json:"to"`
	Regions []edit         `json:"regions,omitempty"`
	Rules   []edit         `json:"rules,omitempty"` // for what no limit applies to
	Limits  []changedLimit `json:"limits"`
	Same    int            `json:"same"` // limits of both documents that do not differ
}

// changedLimit is a limit that differs.
type changedLimit struct {
	Change string            `json:"change"` // added, removed or changed
	Domain string            `json:"domain"`
	Name   string            `json:"name"`
	Match  map[string]string `json:"match,omitempty"`
	Key    []string          `json:"key"`
	Edits  []edit            `json:"edits,omitempty"` // of a changed limit
	// Summary describes a limit that was added or removed.
	Summary string `json:"summary,omitempty"`
	// Lesser says that regions use the lesser of both splits for a while: of an added limit, of its
	// split and an even one. Of a removed limit the parts stay known meanwhile.
	Lesser bool `json:"lesser"`
	// Charged says of a removed limit that it is charged along with what took its place.
	Charged bool     `json:"charged,omitempty"`
	Waiting []string `json:"waiting,omitempty"` // regions that must acknowledge
	// Majority says that a majority of the regions must acknowledge, too.
	Majority bool `json:"majority,omitempty"`
	// Then is how long Lesser lasts at most when all have acknowledged that must.
	Then string `json:"then,omitempty"`
}

// edit is a value that differs.
type edit struct {
	What string `json:"what"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// differ compares two documents. The error says that the newer one cannot follow the older.
func differ(older, newer *policy.Document) (difference, error) {
	d := difference{From: older.Epoch().String(), To: newer.Epoch().String(),
		Regions: regionEdits(older, newer), Rules: ruleEdits(older, newer), Limits: []changedLimit{}}
	// At time 0 every cell begins, so what follows an acknowledgement takes longest then.
	changes, err := barrier.Preview(older, newer, 0)
	if errors.Is(err, barrier.ErrOlder) {
		err = fmt.Errorf("it has version %d, which is lower than %d: raise its version", newer.Version,
			older.Version)
	}
	if err != nil {
		return d, err
	}
	for _, c := range changes {
		if l, differs := changed(c, older, newer); differs {
			d.Limits = append(d.Limits, l)
		} else {
			d.Same++
		}
	}
	return d, nil
}

// regionEdits returns how the regions differ, without what that does to limits.
func regionEdits(older, newer *policy.Document) []edit {
	say := func(d *policy.Document) (map[string]string, []string) {
		all, names := map[string]string{}, []string(nil)
		for _, r := range d.Regions {
			all[r.Name] = fmt.Sprintf("weight %d", r.Weight)
			if d.Fences(r.Name) {
				all[r.Name] += ", fenced"
			}
			if n := d.Life(r.Name); n > 0 {
				all[r.Name] += ", returned " + times(n)
			}
			names = append(names, r.Name)
		}
		for _, name := range d.Removed {
			all[name] = "removed"
		}
		return all, append(names, d.Removed...)
	}
	from, names := say(older)
	to, more := say(newer)
	return edits(from, to, append(names, more...))
}

// ruleEdits returns how what is exempt differs, and what becomes of requests to which no limit
// applies.
func ruleEdits(older, newer *policy.Document) []edit {
	say := func(d *policy.Document) (all map[string]string, names []string) {
		all = map[string]string{}
		for _, r := range append([]policy.DomainRules{{OnNoLimit: d.OnNoLimit}}, d.Domains...) {
			of := ""
			if r.Name != "" {
				of = "domain " + r.Name + " "
			}
			for _, s := range [][2]string{{"on_no_limit", string(r.OnNoLimit)}, {"descriptors", string(r.Descriptors)},
				{"negative_hits", string(r.NegativeHits)}} {
				all[of+s[0]] = s[1]
				names = append(names, of+s[0])
			}
		}
		for _, e := range d.Exempt {
			name := "exempt " + e.Domain + " " + entriesWords(e.Entries)
			all[name] = exemptWords(e)
			names = append(names, name)
		}
		return all, names
	}
	from, names := say(older)
	to, more := say(newer)
	return edits(from, to, append(names, more...))
}

// exemptWords says what becomes of a request that is exempt.
func exemptWords(e policy.Exemption) string {
	what := "no limit"
	switch {
	case e.Deny:
		what = "denied"
	case e.Unlimited:
		what = "unlimited"
	}
	if len(e.Replaces) > 0 {
		what += ", replaces " + strings.Join(e.Replaces, ", ")
	}
	if e.Metadata != nil {
		what += ", metadata " + e.Metadata.String()
	}
	return what
}

// times says how often.
func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// edits returns the values that differ, in the order of names, of which some may stand twice.
func edits(from, to map[string]string, names []string) (all []edit) {
	seen := map[string]bool{}
	for _, name := range names {
		if !seen[name] && from[name] != to[name] {
			all = append(all, edit{name, from[name], to[name]})
		}
		seen[name] = true
	}
	return all
}

// changed says how a limit differs, and whether it does.
func changed(c barrier.Change, older, newer *policy.Document) (changedLimit, bool) {
	of := c.Newer
	if of == nil {
		of = c.Older
	}
	l := changedLimit{Change: "changed", Domain: of.Domain, Name: of.Name, Key: of.Key,
		Lesser: c.Open, Charged: c.Charged, Waiting: c.Waiting, Match: listed(of, nil).Match}
	if c.Open {
		l.Then = afterwards(of, c)
	}
	switch {
	case c.Older == nil:
		l.Change, l.Summary = "added", summary(of)
		return l, true
	case c.Newer == nil:
		l.Change, l.Summary = "removed", summary(of)
		return l, true
	}
	l.Majority = c.Open && 2*len(c.Waiting) <= max(len(older.Regions), len(newer.Regions))
	from, names := values(c.Older, older)
	to, more := values(c.Newer, newer)
	l.Edits = edits(from, to, append(names, more...))
	return l, len(l.Edits) > 0
}

// summary describes a limit on one line.
func summary(l *policy.Limit) string {
	text := fmt.Sprintf("%s, %d per %s", l.Algorithm, l.Limit, windowWords(l))
	if l.Algorithm.Bucket() {
		text += fmt.Sprintf(", burst %d", l.Burst)
	}
	if l.Assign != nil {
		text += ", assigned to Envoys"
	}
	return text
}

// afterwards says how long the newer document still does not count alone, at most, when all have
// acknowledged that must.
func afterwards(l *policy.Limit, c barrier.Change) string {
	if c.Until == 0 {
		return "0s"
	}
	if calendar, ok := l.Calendar(); ok {
		return "the rest of the " + string(calendar.Unit) + ", in its last minute the next one, too, since what was used and lent counts as long"
	}
	longest := c.Until // of what is acknowledged when a window begins
	if l.Algorithm == policy.FixedWindow && l.Window.Microseconds() > algorithms.Advance {
		longest = longest.Add(algorithms.Advance) // rather than in its last minute
	}
	return policy.FormatWindow(time.Duration(longest) * time.Microsecond)
}

// values returns what a document says of a limit, in words, and the names of the values in order.
func values(l *policy.Limit, d *policy.Document) (all map[string]string, names []string) {
	all = map[string]string{}
	say := func(name, value string) {
		all[name] = value
		names = append(names, name)
	}
	regions := d.RegionNames()
	split := listed(l, regions)
	say("limit", fmt.Sprint(l.Limit))
	if l.Algorithm.Bucket() {
		say("burst", fmt.Sprint(l.Burst))
	}
	for _, r := range regions {
		say("split "+r, split.Entitlements[r].String())
		if l.Algorithm.Bucket() {
			say("burst "+r, split.Bursts[r].String())
		}
	}
	if l.MaxDebt > 0 {
		say("max_debt", fmt.Sprint(l.MaxDebt))
	}
	say("settle_within", policy.FormatWindow(l.SettleWithin))
	if a := l.Assign; a != nil {
		say("assign ttl", policy.FormatWindow(a.TTL))
		say("assign no_assignment", fmt.Sprint(a.NoAssignment))
		say("assign max_burst", fmt.Sprint(a.MaxBurst))
	}
	for name, value := range l.Settings() {
		say(name, value)
	}
	say("alias", l.Alias)
	say("replaces", strings.Join(l.Replaces, ", "))
	say("metadata", l.Metadata.String())
	return all, names
}

var signs = map[string]string{"added": "+", "removed": "-", "changed": "~"}

func (d difference) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprintf(t, "epoch %s to %s\n", d.From, d.To)
	for _, r := range d.Regions {
		fmt.Fprintf(t, "region %s\t%s\n", r.What, r.words())
	}
	for _, r := range d.Rules {
		fmt.Fprintf(t, "%s\t%s\n", r.What, r.words())
	}
	for _, l := range d.Limits {
		fmt.Fprintf(t, "\n%s %s/%s by %s%s\n", signs[l.Change], l.Domain, l.Name,
			strings.Join(l.Key, ","), matchWords(l.Match))
		if l.Summary != "" {
			fmt.Fprintf(t, "    %s\n", l.Summary)
		}
		for _, e := range l.Edits {
			fmt.Fprintf(t, "    %s\t%s\n", e.What, e.words())
		}
		for _, line := range l.cost() {
			fmt.Fprintf(t, "    %s\n", line)
		}
	}
	fmt.Fprintf(t, "\n%s the same\n", show.Counted(d.Same, "limit"))
	return t.Flush()
}

func matchWords(match map[string]string) string {
	if len(match) == 0 {
		return ""
	}
	return " (" + conditions(match) + ")"
}

// words shows a value that only one document has as a change from, or to, a dash.
func (e edit) words() string { return cmp.Or(e.From, "-") + " -> " + cmp.Or(e.To, "-") }

// cost says what holds until the newer document counts alone.
func (l changedLimit) cost() []string {
	var who []string
	if len(l.Waiting) > 0 {
		who = append(who, strings.Join(l.Waiting, ", "))
	}
	if l.Majority {
		who = append(who, "a majority of the regions")
	}
	until, then := strings.Join(who, " and "), "then the newer counts alone"
	if l.Then != "0s" {
		then = "then for at most " + l.Then
	}
	switch {
	case !l.Lesser:
		return nil
	case l.Charged:
		return []string{"charged beside what is added:", "until " + until + " acknowledged, " + then}
	case l.Change == "added":
		return []string{"no region has more than an even part:", "until " + until + " acknowledged, " + then}
	case l.Change == "removed":
		return []string{"its parts stay known, should a document have it again:", "until " + until + " acknowledged, " + then}
	}
	return []string{"each region has the smaller of its old and new part:", "until " + until + " acknowledged, " + then}
}
