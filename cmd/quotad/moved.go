package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

// moved are the commands of before this release, each with where it went. They leave with the next
// release.
var moved = []struct{ was, told string }{
	{"context", "quotad context is gone: give --addr, --ca, --cert, --key and --token-file, or set QUOTAD_ADDR, QUOTAD_API_ADDR, " +
		"QUOTAD_CA, QUOTAD_CERT, QUOTAD_KEY and QUOTAD_TOKEN"},
	{"man", "quotad man is now quotad generate man"},
	{"generate completion", "quotad generate completion is now quotad completion"},
	{"cluster", "quotad cluster is now quotad status --all"},
	{"buckets", "quotad buckets show is now quotad explain --ledger, and quotad buckets list is now quotad top NAME=PREFIX"},
	{"chaos list", "quotad chaos list is now quotad chaos run, without a name"},
	{"certs", "quotad certs init is now quotad keys ca, and quotad certs issue is quotad keys cert"},
	{"gossip-key", "quotad gossip-key is now quotad keys gossip"},
	{"token", "quotad token new is now quotad keys token"},
}

// forward adds the commands of before, hidden. Whatever their arguments, they say where they went.
func forward(root *cobra.Command) {
	for _, m := range moved {
		words := strings.Fields(m.was)
		parent := root
		if len(words) > 1 {
			parent, _, _ = root.Find(words[:len(words)-1]) // the table names a command
		}
		parent.AddCommand(&cobra.Command{
			Use: words[len(words)-1], Short: m.told, Hidden: true, DisableFlagParsing: true,
			Args: cobra.ArbitraryArgs,
			RunE: func(*cobra.Command, []string) error { return exit.Usage(errors.New(m.told)) },
		})
	}
}
