package serve

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/serve/serving"
)

func serveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "serve [--config node.yaml]",
		Short: "Run a node of a region",
		Long: `serve runs one node: it decides requests over gRPC and HTTP with its region's Redis, and trades rights with the
other regions. Every setting can be given in the node file, as a variable QUOTAD_* of the environment, or as a flag;
flags go before variables, variables before the file. Required are region, policy, data_dir and redis.

A node file, with the defaults of listen:

  region: us-east
  node: n1                    # unique in its region; default: the host name
  nodes: 1                    # how many nodes the region has
  data_dir: /var/lib/quotad   # the journal goes there
  policy: limits.yaml         # paths are relative to this file
  redis: {url: "redis://127.0.0.1:6379/0"}
  listen: {grpc: "127.0.0.1:8081", http: "127.0.0.1:8080", admin: "127.0.0.1:8083",
           peer: "127.0.0.1:8082", gossip: "127.0.0.1:7946"}
  advertise: {peer: "us.example.com:8082", gossip: "192.0.2.7:7946"}
  seeds: ["eu.example.com:7946"]
  peer_tls: {cert: n1.pem, key: n1.key, ca: ca.pem}   # see quotad keys; of the certificate: quotad://us-east/n1
  gossip_keys: [file:gossip.key]                      # the first encrypts, all decrypt
  bootstrap: false            # true the first time the region is started; alone for the very first node of all

--bootstrap says that the region has no data to lose. The node then asks all nodes that seeds lead to, for 15 s at most, and
does not start if one knows the region to have a store, or if none answers. --bootstrap=alone asks nobody but nodes of the
region itself. All nodes of a region have one Redis: the nodes of a younger second one stop using it as soon as they hear of
the older, and are not ready.

The limits document is read again when it changes and on SIGHUP; while it is invalid the last good one stays in force.
On SIGHUP gossip_keys are read again, too: to change a key, give all nodes [old, new], then [new, old], then [new]. The
files of peer_tls are read again when they change. All else is read once.
SIGTERM and SIGINT end the node once the requests under way are answered.

--check reads all that serve reads, and what that names: the limits document, certificates, keys and the name to advertise.
It prints what the node would be, with warnings, and serves nothing: no port is opened, nothing is written, and no other
node is called. With --connect the Redis is asked for an answer (PING) and for its maxmemory-policy (INFO); no key of it is
read or written. Exit codes then: 0 the node could be started, with or without warnings, 2 it could not.`,
		Example: `  quotad serve --config node.yaml
  quotad serve --config node.yaml --check --connect`,
		Args: command.NoArguments,
	}
	var check, connect bool
	cmd.Flags().BoolVar(&check, "check", false, "say what the node would be and what is wrong with it, and start nothing")
	cmd.Flags().BoolVar(&connect, "connect", false, "with --check: ask the Redis for an answer")
	settings := settingFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := settings.Read()
		switch {
		case err != nil:
			return exit.Usage(err)
		case check:
			s, err := serving.Check(cmd.Context(), c, connect)
			if err != nil {
				return err
			}
			return s.Print(cmd.OutOrStdout())
		case connect:
			return exit.Usage(errors.New("--connect belongs to --check: give both, or leave it out"))
		}
		return serving.Serve(cmd.Context(), c, settings.Read, cmd.ErrOrStderr())
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
