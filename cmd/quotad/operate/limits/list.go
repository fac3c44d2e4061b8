package limits

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
)

func listCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "Show the limits of a document and each region's fixed split",
		Long: `list shows the limits of a document with each region's fixed split (SPLIT): the part of a limit that it has by itself,
and keeps when it is cut off. A range such as 3-4 means that the split leaves a remainder that falls to one region for some
keys and to another for others. BURST is that of all regions together, CELL the slice of time for which rights are held
and lent. MODE home is for limits too small to be split: each key has a home region whose split is all of it, from
which the others borrow. With "reserve" each region keeps that part of its split out of its store, for nodes that
cannot reach it. With "Envoys hold" so many tokens of the burst are theirs (assign); with "to Envoys too" they are
assigned units of a window. With "charged always" a cost that is reported afterwards counts although nothing is left
(charge: always). The split is without what they admit while they have no assignment.`,
		Args:              command.OneArgument("limits document", "limits.yaml"),
		ValidArgsFunction: command.CompleteYAML,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := Load(args[0])
			if err != nil {
				return err
			}
			listed := list(d)
			return show.Result(cmd.OutOrStdout(), output, listed, listed.print)
		},
	}
	command.OutputFlag(cmd, &output)
	return cmd
}

// listing is a limits document, as JSON or for people.
type listing struct {
	Version int64         `json:"version"`
	Epoch   string        `json:"epoch"`
	Regions []string      `json:"regions"`
	Limits  []listedLimit `json:"limits"`
}

type listedLimit struct {
	Name      string            `json:"name"`
	Domain    string            `json:"domain"`
	Key       []string          `json:"key"`
	Match     map[string]string `json:"match,omitempty"`
	Algorithm policy.Algorithm  `json:"algorithm"`
	Limit     quantity.Units    `json:"limit"`
	Window    string            `json:"window"`
	// Burst is that of all regions together. Only token_bucket and leaky_bucket have one.
	Burst quantity.Units `json:"burst,omitempty"`
	Cell  string         `json:"cell"`
	Home  bool           `json:"home"`
	// Reserve is the part of each region's entitlement. In home mode there is none.
	Reserve json.Number `json:"local_reserve,omitempty"`
	// Assign says how Envoys may be assigned parts; nil: they may not.
	Assign       *listedAssign      `json:"assign,omitempty"`
	Shadow       bool               `json:"shadow"`
	Consistency  policy.Consistency `json:"consistency"`
	Charge       policy.Charge      `json:"charge"`
	MaxDebt      quantity.Units     `json:"max_debt,omitempty"` // in each region
	SettleWithin string             `json:"settle_within"`
	Classes      *listedClasses     `json:"classes,omitempty"` // nil: none
	Entitlements map[string]units   `json:"entitlements"`      // by region
	Bursts       map[string]units   `json:"bursts,omitempty"`  // by region
}

// listedClasses is what each class may use of what a region holds.
type listedClasses struct {
	By    string                 `json:"by"`
	Parts map[string]json.Number `json:"parts"`
}

// listedAssign is what a limit says of Envoys: its entitlements and bursts are without their units.
type listedAssign struct {
	TTL          string         `json:"ttl"`
	NoAssignment quantity.Units `json:"no_assignment"`
	MaxBurst     quantity.Units `json:"max_burst"`
}

// units is the range of a number of units over all keys.
type units struct {
	Least quantity.Units `json:"least"`
	Most  quantity.Units `json:"most"`
}

func (u units) String() string {
	if u.Least == u.Most {
		return fmt.Sprint(u.Least)
	}
	return fmt.Sprintf("%d-%d", u.Least, u.Most)
}

func list(d *policy.Document) listing {
	l := listing{Version: d.Version, Epoch: d.Epoch().String(), Regions: d.RegionNames()}
	for i := range d.Limits {
		l.Limits = append(l.Limits, listed(&d.Limits[i], l.Regions))
	}
	return l
}

func listed(l *policy.Limit, regions []string) listedLimit {
	listed := listedLimit{Name: l.Name, Domain: l.Domain, Key: l.Key, Algorithm: l.Algorithm,
		Limit:  l.Limit,
		Window: windowWords(l), Burst: l.Burst, Cell: cellWords(l), Home: l.Home(),
		Shadow: l.Shadow, Consistency: l.Consistency, Charge: l.Charge, MaxDebt: l.MaxDebt,
		SettleWithin: policy.FormatWindow(l.SettleWithin)}
	if l.Reserve() > 0 {
		listed.Reserve = json.Number(l.Reserve().String())
	}
	if a := l.Assign; a != nil {
		listed.Assign = &listedAssign{policy.FormatWindow(a.TTL), a.NoAssignment, a.MaxBurst}
	}
	if c := l.Classes; c != nil {
		listed.Classes = &listedClasses{c.By, map[string]json.Number{}}
		for _, one := range c.All {
			listed.Classes.Parts[one.Name] = json.Number(one.Part.String())
		}
	}
	listed.split(l, regions)
	for _, c := range l.Match {
		if listed.Match == nil {
			listed.Match = map[string]string{}
		}
		listed.Match[c.Name] = c.Value
	}
	return listed
}

// windowWords says how long the windows of a limit are, or which period of the calendar each is.
func windowWords(l *policy.Limit) string {
	if l.Period != "" {
		return l.Period.Words()
	}
	return policy.FormatWindow(l.Window)
}

// cellWords says how long its cells are.
func cellWords(l *policy.Limit) string {
	if c, ok := l.Calendar(); ok {
		return string(c.Unit)
	}
	return policy.FormatWindow(l.Cell())
}

// split fills in what each region is entitled to, over all rotations of remainders and homes.
func (listed *listedLimit) split(l *policy.Limit, regions []string) {
	listed.Entitlements = make(map[string]units, len(regions))
	if l.Algorithm.Bucket() {
		listed.Bursts = make(map[string]units, len(regions))
	}
	for rotation := range regions {
		limit, burst := l.Shared()
		whole := allocator.SplitOf(limit, burst, l.Weights, uint64(rotation), l.Home())
		for i, region := range regions {
			widen(listed.Entitlements, region, whole.Units[i])
			if l.Algorithm.Bucket() {
				widen(listed.Bursts, region, whole.Burst[i])
			}
		}
	}
}

// widen extends the range of a region to include n.
func widen(ranges map[string]units, region string, n quantity.Units) {
	u, known := ranges[region]
	if !known {
		u = units{n, n}
	}
	ranges[region] = units{min(u.Least, n), max(u.Most, n)}
}

func (l listing) print(w io.Writer) error {
	t := show.Table(w)
	fmt.Fprint(t, "NAME\tDOMAIN\tKEY\tMATCH\tALGORITHM\tLIMIT\tWINDOW\tBURST\tCELL\tMODE")
	for _, r := range l.Regions {
		fmt.Fprintf(t, "\tSPLIT %s", r)
	}
	fmt.Fprintln(t)
	for _, limit := range l.Limits {
		name := limit.Name
		if limit.Shadow {
			name += " (shadow)"
		}
		if limit.Charge == policy.ChargeAlways {
			name += " (charged always)"
		}
		if limit.Classes != nil {
			name += " (classes)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s", name, limit.Domain,
			strings.Join(limit.Key, ","), conditions(limit.Match),
			limit.Algorithm, limit.Limit, limit.Window, limit.burst(), limit.Cell, limit.mode())
		for _, r := range l.Regions {
			fmt.Fprintf(t, "\t%s", limit.Entitlements[r])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// burst returns the burst for the table.
func (listed listedLimit) burst() string {
	if !listed.Algorithm.Bucket() {
		return "-"
	}
	return fmt.Sprint(listed.Burst)
}

// mode says how the limit is divided between the regions.
func (listed listedLimit) mode() string {
	switch {
	case listed.Home:
		return "home"
	case listed.Reserve != "":
		return "split, reserve " + listed.Reserve.String()
	case listed.Assign != nil && listed.Algorithm == policy.FixedWindow:
		return "split, to Envoys too"
	case listed.Assign != nil:
		return fmt.Sprintf("split, Envoys hold %d", listed.Assign.MaxBurst)
	}
	return "split"
}

func conditions(match map[string]string) string {
	if len(match) == 0 {
		return "-"
	}
	var all []string
	for _, name := range slices.Sorted(maps.Keys(match)) {
		all = append(all, name+"="+match[name])
	}
	return strings.Join(all, ",")
}
