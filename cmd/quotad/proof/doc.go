// Package proof is the group of what shows whether quotad keeps its promise, and what that costs:
//
//	demo     -> chaos/play/world (regions in this process, a cut and a heal)
//	simulate -> simulation -> chaos/play/sim (seeds, in virtual time), chaos/rivals (--compare)
//	chaos    -> rehearsal -> chaos/real (real processes, or a deployment that runs)
//	bench    -> bench -> chaos/real/process (a node beside servers that share nothing with it)
//
// All but bench have every answer judged from outside.
package proof

import "github.com/spf13/cobra"

// Commands returns the commands of the group.
func Commands() []*cobra.Command {
	return []*cobra.Command{demoCommand(), simulateCommand(), chaosCommand(), benchCommand()}
}
