package sim

import (
	"fmt"

	"github.com/quotad/quotad/chaos/lab/journals"
)

// newJournal gives a node the disk of one that was never started: a journal that remembers nothing.
func (n *node) newJournal() {
	var err error
	n.journal, n.disk, err = journals.New(n.r.name, n.own())
	n.w.must(err)
}

// own is the node's name in its region.
func (n *node) own() string { return fmt.Sprintf("n%d", n.index+1) }

// reopen ends the journal of a life, and opens what is on the node's disk for the next one. The disk takes commits again.
func (n *node) reopen() {
	n.w.must(n.journal.Close())
	n.disk.FailCommits(nil)
	var err error
	n.journal, err = journals.Open(n.disk, n.r.name, n.own())
	n.w.must(err)
}
