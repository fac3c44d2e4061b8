package serve

import (
	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/serve/serving"
)

func configCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "config",
		Short: "Check what a node is configured with",
	}, configCheckCommand())
}

func configCheckCommand() *cobra.Command {
	var connect bool
	cmd := &cobra.Command{
		Use:   "check [--config node.yaml]",
		Short: "Read all that serve would read, and say what is wrong with it",
		Long: `check reads the node file, the variables QUOTAD_* and flags as serve does, and all that they name: the limits document,
certificates, keys and the name to advertise. It prints what the node would be, with warnings, and serves nothing: no
port is opened, nothing is written, and no other node is called. With --connect the Redis is asked for an answer (PING)
and for its maxmemory-policy (INFO); no key of it is read or written.

Exit codes: 0 the node could be started, with or without warnings, 2 it could not.`,
		Example: "  quotad config check --config node.yaml --connect",
		Args:    command.NoArguments,
	}
	cmd.Flags().BoolVar(&connect, "connect", false, "ask the Redis for an answer")
	settings := settingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := settings.Read()
		if err != nil {
			return exit.Usage(err)
		}
		s, err := serving.Check(cmd.Context(), c, connect)
		if err != nil {
			return err
		}
		return s.Print(cmd.OutOrStdout())
	}
	return cmd
}

// settingFlags adds the flags of all settings to a command.
func settingFlags(cmd *cobra.Command) *nodeconfig.Layers {
	settings := nodeconfig.AddFlags(cmd.Flags(), nodeconfig.Environment)
	command.CompleteYAMLFlag(cmd, "config")
	command.CompleteYAMLFlag(cmd, "policy")
	_ = cmd.MarkFlagDirname("data-dir")
	return settings
}
