package sim

import (
	"fmt"

	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/region/journal"
)

// newDisk returns the disk of a node that was never started: a journal that remembers nothing.
func (n *node) newDisk() *lab.Disk {
	d := lab.NewDisk()
	n.w.must(journal.Format(d, n.owner()))
	return d
}

func (n *node) owner() journal.Options {
	return journal.Options{Region: n.r.name, Node: fmt.Sprintf("n%d", n.index+1), Direct: true}
}

// reopen ends the journal of a life, and opens what is on the node's disk for the next one. The disk
// takes commits again.
func (n *node) reopen() {
	if n.journal != nil {
		n.w.must(n.journal.Close())
	}
	n.disk.FailCommits(nil)
	j, err := journal.On(n.disk, "in memory", n.owner())
	n.w.must(err)
	n.journal = j
}
