package sim

import (
	"fmt"
	"slices"

	"github.com/quotad/quotad/chaos/lab/journals"
)

// newJournal gives a node an empty journal on a new disk.
func (n *node) newJournal() {
	var err error
	n.journal, n.disk, err = journals.New(n.r.name, n.own())
	n.w.must(err)
}

// own returns the node's name within its region.
func (n *node) own() string {
	if n.renamed > 0 {
		return fmt.Sprintf("n%d.%d", n.index+1, n.renamed)
	}
	return fmt.Sprintf("n%d", n.index+1)
}

// rename has the node go on under another name, as one that was replaced.
func (n *node) rename() {
	n.r.left[n.own()] = n.w.now
	n.renamed++
	n.name = n.r.name + "/" + n.own()
}

// knowsOf reports whether a node of the region has read what one of that name did that is gone.
func (r *region) knowsOf(name string) bool {
	for _, n := range r.nodes {
		if n.live != nil && slices.Contains(n.live.Gone(), name) {
			return true
		}
	}
	return false
}

// reopen closes the journal of a life and opens another on the same disk for the next life. The
// disk accepts commits again.
func (n *node) reopen() {
	n.w.must(n.journal.Close())
	n.disk.FailCommits(nil)
	var err error
	n.journal, err = journals.Open(n.disk, n.r.name, n.own())
	n.w.must(err)
}
