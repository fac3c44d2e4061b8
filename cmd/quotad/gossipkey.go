package main

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"

	"github.com/spf13/cobra"
)

// gossipKeyBytes is the length of a key for AES-256.
const gossipKeyBytes = 32

func gossipKeyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "gossip-key",
		Short: "Print a new key for gossip",
		Long: `gossip-key prints a random key for the setting gossip_keys, another one each time. All nodes of
all regions are given the same: put it into a file that only quotad can read, and copy that to
every node. It is a secret: whoever holds it can say anything in gossip.`,
		Example: `  (umask 077; quotad gossip-key > gossip.key)       # in the node file: gossip_keys: ["file:gossip.key"]
  quotad gossip-key >> gossip.key                   # a second one, to go over to: see docs/how-to/certificates-and-keys.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key := make([]byte, gossipKeyBytes)
			_, _ = rand.Read(key) // never fails
			_, err := fmt.Fprintln(cmd.OutOrStdout(), base64.StdEncoding.EncodeToString(key))
			return err
		},
	}
}
