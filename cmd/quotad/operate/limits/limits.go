// Package limits has the commands about limits documents: quotad limits, and quotad regions, which
// applies the open document with a region fenced or returned.
//
// An argument names a document (documents.go). Those commands that need no node read it (validate,
// list, bound, diff, test) or write it (import); apply and regions call one, as does status
// --documents (open.go).
package limits

import (
	"github.com/spf13/cobra"

	"github.com/quotad/quotad/cmd/quotad/command"
)

// Commands returns the commands.
func Commands() []*cobra.Command {
	return []*cobra.Command{
		command.Group(&cobra.Command{
			Use:   "limits",
			Short: "Check, show, compare, test, apply and import limits documents",
		}, validateCommand(), listCommand(), boundCommand(), diffCommand(), applyCommand(), importCommand(),
			testCommand()),
		command.Group(&cobra.Command{
			Use:   "regions",
			Short: "Declare that a region is stopped, or has returned",
		}, fenceCommand(), returnCommand()),
	}
}
