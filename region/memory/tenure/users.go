package tenure

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/quantity"
)

const (
	// userNote is the name of the note by which a store remembers which node told last that it uses
	// it, and when: "TIME NODE".
	userNote = "last user"
	// userEvery is how often a node tells that, and userLasts how long it is believed.
	userEvery = 5 * time.Second
	userLasts = 10 * time.Second
	// namesakeShows is how long a process with this node's name may take to be answered again: it
	// asks every beatEvery.
	namesakeShows = beatEvery * 3 / 2
)

// users is what a node knows of others that use its store.
type users struct {
	told  quantity.StoreTime // when this node last told that it uses the store
	found bool               // that no other node uses it, or that this one is not alone
	other atomic.Pointer[string]
}

// NoNamesake fails if the store answers another process under this node's name. Each of the two
// would have a journal, a part of the fixed split without the store, and assignments of Envoys, as
// if it were alone.
//
// If the store remembers this very journal, the note is of the process before this one, which may
// have been killed a moment ago. If it remembers another journal, that may be of a node that is
// gone or of one that runs. A node that runs is answered again soon.
func (t *Tenure) NoNamesake(ctx context.Context) error {
	c := t.config
	before, err := c.Store.Note(ctx, c.Node, "")
	if err != nil || before == "" || t.remembers(before) {
		return nil // a store that does not answer is told of when it is opened
	}
	region, first, err := c.Store.Answered(ctx, c.Node)
	if err != nil || region != c.Region { // opening it says so
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(namesakeShows):
	}
	if _, then, err := c.Store.Answered(ctx, c.Node); err != nil || then == 0 || then == first {
		return nil
	}
	return fmt.Errorf("another process uses this region's Redis as node %s/%s, with a journal of its own: give this node a name of its own, or end that process first",
		c.Region, c.Node)
}

// remembers reports whether what the store remembers of this node's journal can be of this journal.
func (t *Tenure) remembers(before string) bool {
	var incarnation, sequence uint64
	_, _ = fmt.Sscanf(before, "%d %d", &incarnation, &sequence)
	j := t.config.Journal
	return incarnation < j.Incarnation() && sequence <= j.Found()
}

// TellUse makes the store remember that this node uses it. A node that calls no others first looks
// whether the store names an unknown node as its user. Until that node has been silent for
// userLasts, this one is not ready.
func (t *Tenure) TellUse(ctx context.Context) {
	c, u, now := t.config, &t.users, t.config.Store.Latest()
	if now < u.told+quantity.StoreTime(userEvery.Microseconds()) && u.other.Load() == nil {
		return
	}
	if c.Seedless && !u.found {
		before, err := c.Store.Note(ctx, userNote, "")
		if err != nil {
			return
		}
		var at quantity.StoreTime
		var node string
		_, _ = fmt.Sscanf(before, "%d %s", &at, &node)
		if node != "" && node != c.Node && now-at < quantity.StoreTime(userLasts.Microseconds()) && !c.Knows(node) {
			if u.other.Swap(&node) == nil {
				c.Log.Warn("not ready: another node uses this region's Redis, and this one calls no others: give it seeds, or end the other",
					"other", node)
			}
			return
		}
		u.found = true
		u.other.Store(nil)
	}
	if _, err := c.Store.Note(ctx, userNote, fmt.Sprintf("%d %s", now, c.Node)); err == nil {
		u.told = now
	}
}

// alone returns why the node is not ready: another one uses its store.
func (u *users) alone(region string) error {
	other := u.other.Load()
	if other == nil {
		return nil
	}
	return fmt.Errorf("node %s/%s used this region's Redis in the last %d s, and this node has no seeds, so that they would not know of each other: give this node seeds, or end that one",
		region, *other, int(userLasts.Seconds()))
}
