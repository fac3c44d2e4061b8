// Package serve is the group of what runs nodes, and of what they are given:
//
//	quotad serve  -> nodeconfig (settings) -> serving (a node in this process)
//	serve --check -> nodeconfig -> serving, which says what the node would be, and starts nothing
//	keys          -> authority (certificates), region/front/roles (tokens)
//	dev           -> dev (regions in this process, for trying out)
package serve

import "github.com/spf13/cobra"

// Commands returns the commands of the group.
func Commands() []*cobra.Command {
	return []*cobra.Command{serveCommand(), keysCommand(), devCommand()}
}
