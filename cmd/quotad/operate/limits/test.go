package limits

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/operate/remote"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
)

func testCommand() *cobra.Command {
	var t explaining
	cmd := &cobra.Command{
		Use:   "test NAME=VALUE...",
		Short: "Say which limits apply to a request, and why others do not",
		Long: `test says which limits of a document apply to a request with these descriptors, which nearly do, and what keeps them
from it. It charges nothing and needs no node if --file names the document; else it asks a node for the one in force.
Limits that lack one thing alone are shown; with --all every limit of the domain is. With --envoy the descriptors are one
list in this order, as Envoy sends it; else they are as in /v1/check, and have no order.

Exit codes: 0 a limit applies, or the request is exempt, 1 the document cannot be read, 2 usage, or the document is
invalid, 4 no limit applies, or the document denies such requests whatever applies, 5 no node answers.`,
		Example: `  quotad limits test --file limits.yaml --domain api account=42 plan=free
  quotad limits test --file limits.yaml --domain mongo --envoy database=users user=7`,
		RunE: func(cmd *cobra.Command, args []string) error {
			list, err := readList(args)
			if err != nil {
				return exit.Usage(err)
			}
			d, err := t.document(cmd.Context())
			if err != nil {
				return err
			}
			e := d.Explain(t.domain, list, t.envoy)
			answer := t.tested(d, e, list)
			if err := show.Result(cmd.OutOrStdout(), t.output, answer, answer.print); err != nil {
				return err
			}
			if answer.Denied || len(answer.Applies) == 0 && e.Exempt == nil ||
				e.Stray != "" && e.Rules.OnNoLimit == policy.NoLimitDeny {
				return exit.Silently(exit.Denied)
			}
			return nil
		},
	}
	t.node.OperatorFlags(cmd)
	f := cmd.Flags()
	f.StringVar(&t.file, "file", "", "limits document, - for standard input; empty: the one in force at a node")
	f.StringVar(&t.domain, "domain", "", "domain of the request")
	f.BoolVar(&t.envoy, "envoy", false, "take the descriptors as a list in order, as those of Envoy")
	f.BoolVar(&t.all, "all", false, "show all limits of the domain")
	_ = cmd.MarkFlagRequired("domain")
	command.CompleteYAMLFlag(cmd, "file")
	command.OutputFlag(cmd, &t.output)
	return cmd
}

// explaining holds the options of limits test.
type explaining struct {
	node                 remote.Node
	file, domain, output string
	envoy, all           bool
}

// maxTested is as many descriptors as a node takes.
const maxTested = 16

// readList reads descriptors in their order, of which several may have one name.
func readList(args []string) ([]policy.KeyValue, error) {
	if len(args) == 0 {
		return nil, errors.New("name descriptors, such as account=42 plan=free")
	}
	if len(args) > maxTested {
		return nil, fmt.Errorf("%d descriptors; a request has at most %d", len(args), maxTested)
	}
	list := make([]policy.KeyValue, len(args))
	for i, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok || name == "" || !utf8.ValidString(arg) {
			return nil, fmt.Errorf("%q is not a descriptor; write it like account=42, in UTF-8", arg)
		}
		list[i] = policy.KeyValue{Name: name, Value: value}
	}
	return list, nil
}

// document returns the document of the file, or the one in force at the node.
func (t *explaining) document(ctx context.Context) (*policy.Document, error) {
	if t.file == "" {
		a := applying{node: t.node}
		return a.newest(ctx)
	}
	return Load(t.file)
}

// tested is what a document makes of a request, as JSON or for people.
type tested struct {
	Epoch     string         `json:"epoch"`
	Domain    string         `json:"domain"`
	Known     bool           `json:"domain_known"`
	OnNoLimit string         `json:"on_no_limit"`
	Exempt    bool           `json:"exempt"`
	ExemptBy  string         `json:"exempt_by,omitempty"` // its descriptors, in words
	Denied    bool           `json:"denied,omitempty"`    // by the exemption
	Stray     string         `json:"stray,omitempty"`     // a descriptor whose value no match names
	Applies   []appliesTo    `json:"applies"`
	Others    []doesNotApply `json:"others"`
	Hints     []string       `json:"hints,omitempty"`
	left      int            // of others that are not shown
}

type appliesTo struct {
	Limit  string `json:"limit"`
	Units  int64  `json:"limit_units"`
	Window string `json:"window"`
	Key    string `json:"key"`
	Shadow bool   `json:"shadow,omitempty"`
	Assign bool   `json:"assign,omitempty"` // Envoys may be assigned parts
	// Class is that of the request, and Part what it may use of what a region holds; absent: the
	// limit has no classes.
	Class *string     `json:"class,omitempty"`
	Part  json.Number `json:"class_part,omitempty"`
}

type doesNotApply struct {
	Limit string   `json:"limit"`
	Terms string   `json:"terms"` // what tells it from others of its name
	Lacks []string `json:"lacks"`
}

func (t *explaining) tested(d *policy.Document, e policy.Explanation, list []policy.KeyValue) tested {
	answer := tested{Epoch: d.Epoch().String(), Domain: t.domain, Known: e.Known,
		OnNoLimit: string(e.Rules.OnNoLimit), Exempt: e.Exempt != nil, Applies: []appliesTo{},
		Others: []doesNotApply{}, Hints: e.Unused(list), Stray: e.Stray}
	if e.Exempt != nil {
		answer.ExemptBy, answer.Denied = entriesWords(e.Exempt.Entries), e.Exempt.Deny
	}
	if !e.Known {
		answer.Hints = append(answer.Hints, fmt.Sprintf("the document has no domain %q; %s", t.domain, e.Meant))
	}
	for _, one := range e.Limits {
		l := one.Limit
		switch {
		case one.Applies:
			applies := appliesTo{Limit: l.Name, Units: int64(l.Limit), Window: windowWords(l),
				Key: keyWords(one.Bucket), Shadow: l.Shadow, Assign: l.Assign != nil}
			if l.Classes != nil {
				applies.Class, applies.Part = &one.Class.Name, json.Number(one.Class.Part.String())
			}
			answer.Applies = append(answer.Applies, applies)
		case t.all || len(one.Lacks) < 2:
			answer.Others = append(answer.Others, doesNotApply{l.Name, termsWords(l), one.Lacks})
		default:
			answer.left++
		}
	}
	return answer
}

// keyWords names the key of a bucket.
func keyWords(id policy.BucketID) string {
	ref, err := policy.ParseBucketID(id)
	if err != nil {
		return ""
	}
	var words []string
	for _, kv := range ref.Key {
		words = append(words, kv.Name+"="+kv.Value)
	}
	return strings.Join(words, " ")
}

// termsWords says to what an entry applies.
func termsWords(l *policy.Limit) string {
	if l.Entries != nil {
		return "entries " + entriesWords(l.Entries)
	}
	text := "key " + strings.Join(l.Key, ",")
	for i, c := range l.Match {
		if i == 0 {
			text += ", match"
		}
		text += " " + c.Name + "=" + c.Value
	}
	return text
}

func entriesWords(all []policy.Entry) string {
	var words []string
	for _, e := range all {
		words = append(words, e.String())
	}
	return strings.Join(words, " > ")
}

// strayWords says what becomes of a request with a stray descriptor.
func (t tested) strayWords() string {
	if policy.OnNoLimit(t.OnNoLimit) == policy.NoLimitDeny {
		return "the request is denied, whatever applies"
	}
	words := "limits that name " + show.Printable(t.Stray) + " do not count the request"
	if policy.OnNoLimit(t.OnNoLimit) == policy.NoLimitWarn {
		words += ", and the log says so"
	}
	return words
}

func (t tested) print(w io.Writer) error {
	for _, a := range t.Applies {
		note := ""
		if a.Shadow {
			note = ", in shadow: it never denies"
		}
		if a.Assign {
			note = ", which Envoys may be assigned parts of"
		}
		switch {
		case a.Class != nil && *a.Class == "":
			note += ", of no class: it may use all of what a region holds"
		case a.Class != nil:
			note += fmt.Sprintf(", class %s: it may use %s of what a region holds", show.Printable(*a.Class), a.Part)
		}
		fmt.Fprintf(w, "applies  %s: %d a %s for %s%s\n", show.Name(a.Limit), a.Units, a.Window,
			show.Printable(a.Key), note)
	}
	switch {
	case t.Denied:
		fmt.Fprintf(w, "denied   by the exemption of %s\n", show.Printable(t.ExemptBy))
	case t.Exempt:
		not := "no limit counts it"
		if len(t.Applies) > 0 {
			not = "limits with a key do not count it"
		}
		fmt.Fprintf(w, "exempt   by %s: %s\n", show.Printable(t.ExemptBy), not)
	case len(t.Applies) == 0:
		fmt.Fprintf(w, "none     no limit applies: such requests get on_no_limit: %s\n", t.OnNoLimit)
	}
	if t.Stray != "" {
		fmt.Fprintf(w, "stray    no limit's match names this value of %s: %s (on_no_limit: %s)\n",
			show.Printable(t.Stray), t.strayWords(), t.OnNoLimit)
	}
	for _, o := range t.Others {
		fmt.Fprintf(w, "not      %s (%s): %s\n", show.Name(o.Limit), show.Printable(o.Terms),
			show.Printable(strings.Join(o.Lacks, "; ")))
	}
	for _, h := range t.Hints {
		fmt.Fprintf(w, "hint     %s\n", show.Printable(h))
	}
	if t.left > 0 {
		fmt.Fprintf(w, "(of %s more than one thing is lacking; --all shows them)\n",
			show.Counted(t.left, "other limit"))
	}
	return nil
}
