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
	{"config", "quotad config check is now quotad serve --check"},
	{"limits status", "quotad limits status is now quotad status --documents"},
}

// movedFlags are the flags of before this release, by the command that had them, each with where
// they went. They leave with the next release.
var movedFlags = []struct {
	command string
	were    []string
	told    movedFlag
}{{"bench", []string{"algorithm", "consistency", "among", "grpc", "pid", "compare", "compare-pid", "compare-domain",
	"compare-descriptor"}, "it is now one of go run ./chaos/bench, in a clone of quotad's repository"}}

// movedFlag is the value of a flag of before. Whatever is given, it says where the flag went.
type movedFlag string

// Set implements pflag.Value.
func (m movedFlag) Set(string) error { return errors.New(string(m)) }

// String implements pflag.Value.
func (movedFlag) String() string { return "" }

// Type implements pflag.Value.
func (movedFlag) Type() string { return "string" }

// forward adds the commands and flags of before, hidden. Whatever their arguments, they say where
// they went.
func forward(root *cobra.Command) {
	for _, m := range movedFlags {
		cmd, _, _ := root.Find([]string{m.command}) // the table names a command
		for _, flag := range m.were {
			cmd.Flags().Var(m.told, flag, "")
			cmd.Flags().Lookup(flag).Hidden = true
		}
	}
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
