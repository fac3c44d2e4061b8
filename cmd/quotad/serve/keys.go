package serve

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/region/front/roles"
)

func keysCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "keys",
		Short: "Make what says who somebody is: tokens, the key of gossip, certificates",
		Long: `keys makes what callers, operators and nodes prove themselves with: tokens of callers (roles), the key of gossip
(gossip_keys), and an authority with certificates of nodes (peer_tls, api_tls, admin_tls).`,
	}, keysTokenCommand(), keysGossipCommand(), keysCACommand(), keysCertCommand())
}

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

// gossipKeyBytes is the length of a key for AES-256.
const gossipKeyBytes = 32

func keysGossipCommand() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "gossip",
		Short: "Make a key for gossip",
		Long: `gossip prints a random key for the setting gossip_keys, another one each time. All nodes of
all regions are given the same: put it into a file that only quotad can read (--out makes one, or
adds a line to it), and copy that to every node. It is a secret: whoever holds it can say anything
in gossip.`,
		Example: `  quotad keys gossip --out gossip.key       # in the node file: gossip_keys: ["file:gossip.key"]
  quotad keys gossip --out gossip.key       # a second one, to go over to: see docs/how-to/certificates-and-keys.md`,
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key := make([]byte, gossipKeyBytes)
			_, _ = rand.Read(key) // never fails
			return writeSecret(cmd.OutOrStdout(), file, base64.StdEncoding.EncodeToString(key), true)
		},
	}
	outFlag(cmd, &file)
	return cmd
}

// outFlag adds the flag that names the file of a secret.
func outFlag(cmd *cobra.Command, into *string) {
	cmd.Flags().StringVar(into, "out", "", "`file` to write it to, made for its owner alone (default: standard output)")
}

// writeSecret writes a line to a new file that its owner alone can read, or to out if path is empty.
// With more it is added to a file that is there. A file that others can read is refused: what a shell
// makes by > is one.
func writeSecret(out io.Writer, path, line string, more bool) error {
	if path == "" {
		_, err := fmt.Fprintln(out, line)
		return err
	}
	how := os.O_WRONLY | os.O_CREATE | os.O_APPEND
	if !more {
		how |= os.O_EXCL
	}
	f, err := os.OpenFile(path, how, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return exit.Usage(fmt.Errorf("--out: %s is there already: name another file, or remove it", path))
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("--out: %w", err))
	}
	info, err := f.Stat()
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = exit.Usage(fmt.Errorf("--out: others can read %s (%v): chmod 600 it, and write it again",
			path, info.Mode().Perm()))
	}
	if err == nil {
		_, err = fmt.Fprintln(f, line)
	}
	return errors.Join(err, f.Close())
}
