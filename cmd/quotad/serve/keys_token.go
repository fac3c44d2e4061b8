package serve

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/region/front/roles"
)

func keysTokenCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a token, and its hash for the roles file",
		Long: `token prints a new token on standard output, or writes it to a new file with --out, and its hash on standard error. The
token is a secret: give it to the caller, and write the hash alone into the roles file.

Callers and operators send it as Authorization: Bearer TOKEN. A node knows the hashes of tokens alone, by the file that its
setting roles names:

  callers:
    - name: shop
      roles: [check]              # check, read, operate, admin; operate includes read, and admin operate
      domains: [api]              # the domains of limits that it may name; default: all
      tokens: ["sha256:..."]      # two while one replaces the other
    - name: alice
      roles: [operate]
      certificates: ["spiffe://example.org/alice"]   # a URI of a certificate, or dns:NAME`,
		Example: "  quotad keys token --out shop.token",
		Args:    command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			token, hashed := roles.NewToken()
			if err := writeSecret(cmd.OutOrStdout(), file, token, false); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.ErrOrStderr(), hashed)
			return err
		},
	}
	outFlag(cmd, &file)
	return cmd
}
