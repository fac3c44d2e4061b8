package sim

import (
	"fmt"

	"github.com/quotad/quotad/chaos/lab/journals"
)

// newJournal gives a node an empty journal on a new disk.
func (n *node) newJournal() {
	var err error
	n.journal, n.disk, err = journals.New(n.r.name, n.own())
	n.w.must(err)
}

// own returns the node's name within its region.
func (n *node) own() string { return fmt.Sprintf("n%d", n.index+1) }

// reopen closes the journal of a life and opens another on the same disk for the next life. The
// disk accepts commits again.
func (n *node) reopen() {
	n.w.must(n.journal.Close())
	n.disk.FailCommits(nil)
	var err error
	n.journal, err = journals.Open(n.disk, n.r.name, n.own())
	n.w.must(err)
}
