package serve

import (
	"crypto/rand"
	"encoding/base64"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
)

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
