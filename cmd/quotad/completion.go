package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/exit"
)

var shells = []string{"bash", "zsh", "fish", "powershell"}

func completionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion " + strings.Join(shells, "|"),
		Short: "Print a script that completes quotad's commands in a shell",
		Long: `completion prints a script that has a shell complete the commands and flags of quotad. To try it out, load it into the
shell that runs; to keep it, write it where the shell looks at its start:

  bash         source <(quotad completion bash)
               quotad completion bash > /etc/bash_completion.d/quotad
  zsh          source <(quotad completion zsh)
               quotad completion zsh > "${fpath[1]}/_quotad"
  fish         quotad completion fish | source
               quotad completion fish > ~/.config/fish/completions/quotad.fish
  powershell   quotad completion powershell | Out-String | Invoke-Expression

bash needs its package bash-completion, zsh that compinit was run.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return exit.Usage(fmt.Errorf("name one shell: %s; see %s --help",
					strings.Join(shells, ", "), cmd.CommandPath()))
			}
			return nil
		},
		ValidArgs:             shells,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command,
			args []string) error {
			return complete(cmd, args[0])
		},
	}
}

func complete(cmd *cobra.Command, shell string) error {
	root, out := cmd.Root(), cmd.OutOrStdout()
	switch shell {
	case "bash":
		return root.GenBashCompletionV2(out, true)
	case "zsh":
		return root.GenZshCompletion(out)
	case "fish":
		return root.GenFishCompletion(out, true)
	}
	return root.GenPowerShellCompletionWithDesc(out)
}
