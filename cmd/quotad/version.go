package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/show"
)

// build is what this binary was built from.
type build struct {
	Version  string `json:"version"` // of the module; "(devel)" outside a release
	Commit   string `json:"commit"`  // empty if it was not built from a repository
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
}

func thisBuild() build {
	b := build{Version: "(unknown)"}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String is the build on one line.
func (b build) String() string {
	commit := b.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case b.Modified:
		commit += " with changes"
	}
	return fmt.Sprintf("quotad %s, commit %s, %s", b.Version, commit, b.Go)
}

func versionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print what this binary was built from",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if output == "json" {
				return show.JSON(cmd.OutOrStdout(), thisBuild())
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), thisBuild())
			return err
		},
	}
	outputFlag(cmd, &output)
	return cmd
}
