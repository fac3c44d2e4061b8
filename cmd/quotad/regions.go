package main

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/policy"
)

func regionsCommand() *cobra.Command {
	return group(&cobra.Command{
		Use:   "regions",
		Short: "Declare that a region is stopped",
	}, regionsFenceCommand())
}

func regionsFenceCommand() *cobra.Command {
	var a applying
	var yes bool
	var write string
	cmd := &cobra.Command{
		Use:   "fence NAME --yes",
		Short: "Declare that a region is stopped, so that the others take over its part",
		Long: `fence raises the version of the limits document that is open, adds the region to its list "fenced" and applies it. The
region then gets nothing of any limit, and no other waits for it to acknowledge a document.

It is your word that all nodes of the region are stopped, and stay so until they reach another region. If one runs all the
same, cut off from all others, it goes on admitting the region's old part, on top of what the others admit: see the line
fenced-alive of quotad limits bound. A node that reaches another region finds the document and serves nothing.

To undo it, write a document of a higher version without the name, by hand. Give the nodes' files the new document, too:
--write puts it into a file.

Exit codes: 0 all other regions acknowledged, 1 not all did, 2 bad usage, no such region or no --yes, 5 no node answers.`,
		Example: "  quotad regions fence ap-south --yes --write limits.yaml",
		Args:    one("region", "ap-south"),
		RunE: func(cmd *cobra.Command, args []string) error {
			before, err := a.newest(cmd.Context())
			if err != nil {
				return err
			}
			d, err := fence(before, args[0])
			if err != nil {
				return exit.Usage(err)
			}
			if !yes {
				return exit.Usage(fmt.Errorf("nothing was changed: fence is your word that all nodes of %s are stopped; one that runs all "+
					"the same, cut off, admits the region's old part on top of what the others admit; give --yes if they are stopped", args[0]))
			}
			if err := a.apply(cmd, before, d, "the document that fences "+args[0]); err != nil {
				return err
			}
			return a.keep(cmd, d, write)
		},
	}
	a.flags(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "the region is stopped")
	cmd.Flags().StringVar(&write, "write", "", "`file` to write the document to that was applied")
	return cmd
}

// keep writes a document to a file, or reminds of the nodes' files.
func (a *applying) keep(cmd *cobra.Command, d *policy.Document, path string) error {
	if path == "" {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "the nodes' files are older than version %d now: write fenced: [%s] into them, too\n",
			d.Version, strings.Join(d.Fenced, ", "))
		return err
	}
	if err := os.WriteFile(path, d.Source(), 0o644); err != nil {
		return fmt.Errorf("the document is applied, and cannot be written: %w; choose another file", err)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %s: give it to all nodes\n", path)
	return err
}

var (
	versionLine = regexp.MustCompile(`(?m)^version:[ \t]*[0-9]+[ \t]*(#.*)?\r?$`)
	fencedLine  = regexp.MustCompile(`(?m)^fenced:[ \t]*\[.*\][ \t]*(#.*)?\r?$`)
)

// fence returns a document of the next version that fences one region more, with the comments and
// the order of the text that it was read from.
func fence(before *policy.Document, region string) (*policy.Document, error) {
	if _, has := before.RegionIndex(region); !has {
		return nil, fmt.Errorf("the document that is open, %s, has no region %q; it has %s", before.Epoch(), region,
			strings.Join(before.RegionNames(), ", "))
	}
	if before.Fences(region) {
		return nil, fmt.Errorf("%s is fenced already, by %s", region, before.Epoch())
	}
	all := append(slices.Clone(before.Fenced), region)
	slices.Sort(all)
	fenced := "fenced: [" + strings.Join(all, ", ") + "]"
	version := fmt.Sprintf("version: %d", before.Version+1)
	text := string(before.Source())
	if len(before.Fenced) > 0 {
		text = fencedLine.ReplaceAllString(text, fenced)
	} else {
		version += "\n" + fenced
	}
	text = versionLine.ReplaceAllString(text, version)
	d, err := policy.Parse("the document with "+fenced, []byte(text))
	if err != nil || d.Version != before.Version+1 || !slices.Equal(d.Fenced, all) {
		return nil, errors.Join(fmt.Errorf("write %s and version: %d into the document by hand and use quotad limits apply: "+
			"they cannot be added to its text as it is", fenced, before.Version+1), err)
	}
	return d, nil
}
