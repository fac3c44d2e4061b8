// Package journals opens journals on disks in memory (package lab), for simulations and tests. Each
// call of such a journal commits before it returns, and nothing runs in the background.
package journals

import (
	"github.com/quotad/quotad/chaos/lab"
	"github.com/quotad/quotad/region/memory/journal"
)

// New returns an empty journal for a node, and the disk below it.
func New(region, node string) (*journal.Journal, *lab.Disk, error) {
	d := lab.NewDisk()
	if err := journal.Format(d, owner(region, node)); err != nil {
		return nil, nil, err
	}
	j, err := Open(d, region, node)
	return j, d, err
}

// Open opens the journal that is on a disk, for the next life of a node.
func Open(d *lab.Disk, region, node string) (*journal.Journal, error) {
	return journal.On(d, "in memory", owner(region, node))
}

func owner(region, node string) journal.Options {
	return journal.Options{Region: region, Node: node, Direct: true}
}
