package rights

import (
	"context"
	"fmt"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/allocator/exchange"
	"github.com/quotad/quotad/region/memory/copies"
	"github.com/quotad/quotad/region/memory/journal"
)

// mostElsewhere bounds the checkpoints in a journal: with more, it takes no uses of other regions.
const mostElsewhere = 4 * DefaultBuckets

// usedElsewhere returns the id under which the journal has what another region used of a bucket.
func usedElsewhere(region, bucket string) string { return "of:" + region + ":" + bucket }

// CopyElsewhere keeps what a node of another region has seen that is alone there, and returns the
// number of the part that it takes next. It fails as CopyIn does, and if the journal has no room.
func (e *Engine) CopyElsewhere(ctx context.Context, p copies.Part) (next uint64, err error) {
	if err := e.canBe(p.Uses); err != nil {
		return 0, err
	}
	if n := e.config.Journal.Stats().Checkpoints; n > mostElsewhere {
		return 0, fmt.Errorf("the journal of node %s has %d uses, and takes none of other regions: run two nodes in region %s",
			e.config.Node, n, p.Region)
	}
	all := make([]journal.Checkpoint, len(p.Uses))
	for i, u := range p.Uses {
		// That region's clock may be behind this one's.
		all[i] = journal.Checkpoint{Bucket: usedElsewhere(p.Region, u.Bucket), Cell: u.Cell, Used: u.Units, At: u.At,
			Until: u.Until.Add(algorithms.MaxClockStep), Generation: u.Generation}
	}
	if len(all) > 0 {
		if err := e.config.Journal.Checkpoint(ctx, all, e.config.Store.Seen()...); err != nil {
			return 0, err
		}
	}
	p.Node = p.Region + "/" + p.Node
	return e.others.Take(e.config.Elapsed(), p), nil
}

// copiedElsewhere returns the copies that this node has of another region.
func (e *Engine) copiedElsewhere(region string) (all []exchange.Copied) {
	for _, c := range e.others.Complete() {
		if of, node, _ := strings.Cut(c.Node, "/"); of == region {
			all = append(all, exchange.Copied{Node: node, Since: c.Since, Until: c.Until, Read: c.Read})
		}
	}
	return all
}

// addUses adds to testimonies for another region what this node has of its use.
func (e *Engine) addUses(region string, all []exchange.Testimony) error {
	for i := range all {
		t := &all[i]
		checkpoints, err := e.config.Journal.Checkpoints(usedElsewhere(region, t.Bucket))
		if err != nil {
			return err
		}
		for _, c := range checkpoints {
			t.Use = newest(t.Use, c)
		}
	}
	return nil
}
