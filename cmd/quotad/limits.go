package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/allocator"
	"github.com/quotad/quotad/policy"
)

func limitsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "limits",
		Short: "Check and show a limits document",
		Args:  aSubcommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },

		SuggestionsMinimumDistance: 2,
	}
	cmd.AddCommand(limitsValidateCommand(), limitsListCommand())
	return cmd
}

func limitsValidateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a limits document, and print everything that is wrong with it",
		Args:  oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := loadPolicy(args[0])
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: valid: version %d, epoch %s, %s, %s\n",
				args[0], d.Version, d.Epoch(), counted(len(d.Limits), "limit"), counted(len(d.Regions), "region"))
			return err
		},
	}
}

func limitsListCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "list FILE",
		Short: "Show the limits of a document and each region's fixed split",
		Long: `list shows the limits of a document with the entitlement F of each region: its fixed split of the limit, which it
keeps when it is cut off. A range such as 3-4 means that the split leaves a remainder that falls to one region for some
keys and to another for others.`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := loadPolicy(args[0])
			if err != nil {
				return err
			}
			listed := list(d)
			if output == "json" {
				return printJSON(cmd.OutOrStdout(), listed)
			}
			return listed.print(cmd.OutOrStdout())
		},
	}
	outputFlag(cmd, &output)
	return cmd
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usageError(fmt.Errorf("name one limits document, as in %s limits.yaml", cmd.CommandPath()))
	}
	return nil
}

// loadPolicy reads a limits document; the error shows every problem, one a line, and calls for exit code 2.
func loadPolicy(path string) (*policy.Document, error) {
	d, err := policy.Load(path)
	var problems policy.Errors
	if errors.As(err, &problems) {
		return nil, usageError(fmt.Errorf("%s is not valid: mend %s and try again\n%w", path, counted(len(problems), "problem"), err))
	}
	if err != nil {
		return nil, usageError(err)
	}
	return d, nil
}

// listing is a limits document for people and their scripts.
type listing struct {
	Version int64         `json:"version"`
	Epoch   string        `json:"epoch"`
	Regions []string      `json:"regions"`
	Limits  []listedLimit `json:"limits"`
}

type listedLimit struct {
	Name         string            `json:"name"`
	Domain       string            `json:"domain"`
	Key          []string          `json:"key"`
	Match        map[string]string `json:"match,omitempty"`
	Algorithm    policy.Algorithm  `json:"algorithm"`
	Limit        int64             `json:"limit"`
	Window       string            `json:"window"`
	Shadow       bool              `json:"shadow"`
	Entitlements map[string]units  `json:"entitlements"` // by region
}

// units is a range of units, over all keys.
type units struct {
	Least int64 `json:"least"`
	Most  int64 `json:"most"`
}

func (u units) String() string {
	if u.Least == u.Most {
		return fmt.Sprint(u.Least)
	}
	return fmt.Sprintf("%d-%d", u.Least, u.Most)
}

func list(d *policy.Document) listing {
	l := listing{Version: d.Version, Epoch: d.Epoch().String()}
	for _, r := range d.Regions {
		l.Regions = append(l.Regions, r.Name)
	}
	for i := range d.Limits {
		limit := &d.Limits[i]
		listed := listedLimit{Name: limit.Name, Domain: limit.Domain, Key: limit.Key, Algorithm: limit.Algorithm,
			Limit: limit.Limit, Window: span(limit.Window), Shadow: limit.Shadow, Entitlements: entitlements(limit, l.Regions)}
		for _, c := range limit.Match {
			if listed.Match == nil {
				listed.Match = map[string]string{}
			}
			listed.Match[c.Name] = c.Value
		}
		l.Limits = append(l.Limits, listed)
	}
	return l
}

// entitlements returns what each region is entitled to, over all rotations of the remainder.
func entitlements(l *policy.Limit, regions []string) map[string]units {
	split := make(map[string]units, len(regions))
	for rotation := range regions {
		for i, f := range allocator.Entitlements(l.Limit, l.Weights, uint64(rotation)) {
			u, known := split[regions[i]]
			if !known {
				u = units{f, f}
			}
			split[regions[i]] = units{min(u.Least, f), max(u.Most, f)}
		}
	}
	return split
}

func (l listing) print(w io.Writer) error {
	t := table(w)
	fmt.Fprint(t, "NAME\tDOMAIN\tKEY\tMATCH\tALGORITHM\tLIMIT\tWINDOW")
	for _, r := range l.Regions {
		fmt.Fprintf(t, "\tF %s", r)
	}
	fmt.Fprintln(t)
	for _, limit := range l.Limits {
		name := limit.Name
		if limit.Shadow {
			name += " (shadow)"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%s", name, limit.Domain, strings.Join(limit.Key, ","), conditions(limit.Match),
			limit.Algorithm, limit.Limit, limit.Window)
		for _, r := range l.Regions {
			fmt.Fprintf(t, "\t%s", limit.Entitlements[r])
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
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
