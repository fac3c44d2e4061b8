// Package operate is the group of what callers and operators do with nodes that run:
//
//	check, settle               -> remote -> the API of a node
//	status, explain, top        -> remote -> its admin listener, which asks the other nodes
//	reset, recover, cut         -> remote -> its admin listener, which acts
//	limits, regions (in limits) -> a document in a file, or remote -> its admin listener
//	generate                    -> files for Prometheus, Grafana, Envoy and editors
package operate

import (
	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/operate/limits"
)

// Commands returns the commands of the group.
func Commands() []*cobra.Command {
	return append(limits.Commands(), checkCommand(), settleCommand(), statusCommand(), explainCommand(),
		topCommand(), resetCommand(), recoverCommand(), cutCommand(), generateCommand())
}
