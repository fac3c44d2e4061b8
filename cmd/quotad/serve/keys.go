package serve

import (
	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
)

func keysCommand() *cobra.Command {
	return command.Group(&cobra.Command{
		Use:   "keys",
		Short: "Make what says who somebody is: tokens, the key of gossip, certificates",
		Long: `keys makes what callers, operators and nodes prove themselves with: tokens of callers (roles), the key of gossip
(gossip_keys), and an authority with certificates of nodes (peer_tls, api_tls, admin_tls).`,
	}, keysTokenCommand(), keysGossipCommand(), keysCACommand(), keysCertCommand())
}
