package store

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/quantity"
)

// Opening says what a node knows when it opens its region's store.
type Opening struct {
	Region string
	Node   string
	Epoch  string   // names the documents that are open, as the node knows
	Folded []string // names of documents that are folded into what Epoch names
	// Guess says that the node knows only the document of its file, and not whether it is in force
	// anywhere. If others stand in the store, Open fails with ErrOtherDocuments.
	Guess          bool
	LastGeneration uint64 // the last generation that this node's journal remembers, 0: none
	Bootstrap      bool   // this region never served, so an empty store is no loss
	// Ended is a generation that stands and must not be taken: Open begins another one, without
	// loss.
	Ended uint64
	// Seen is what each shard is known to have shown to this node, in order of the shards, or one
	// time that all of them have shown. A shard that remembers less is an older copy.
	Seen []quantity.StoreTime
	// Latest bounds what the store showed before this node started. It counts as long as the node
	// has heard nothing from the store since then.
	Latest quantity.StoreTime
	// Reserve is called with each store time that is later than all before it, before the answer
	// that carries it is given out. It must be quick if nothing is to be done. Nil: it is not
	// called.
	Reserve func(now quantity.StoreTime)
	// Keep keeps the texts of the documents in the store. It is called before the store names the
	// documents of Epoch, because the node that names them may die at once. generation is the one
	// that stands, 0: none. It is not called for a guess beside other documents. Nil: it is not
	// called.
	Keep func(ctx context.Context, generation uint64) error
	// MayBegin is asked before a generation is begun, unless that only follows Ended. If it returns
	// an error, Open fails with that. Nil: it is not asked, and nobody confirms anything.
	MayBegin func(context.Context, Beginning) (Told, error)
}

// Beginning is a generation that Open is about to begin.
type Beginning struct {
	// Found is the ID of the Origin of the store as it stands; empty: none stands.
	Found string
	// First says that the region is taken to have no data to lose, as Opening.Bootstrap says.
	First bool
	// Confirm is what the region's other nodes are to confirm, so that nothing counts as lost; nil:
	// they cannot.
	Confirm *Confirmation
}

// Told is what the other nodes of a region told before a generation is begun.
type Told struct {
	Shown     quantity.StoreTime // the latest time that the store has shown to them; 0: nobody knows
	Confirmed bool               // all that Beginning.Confirm names have confirmed
}

// Opened says how Open found the store.
type Opened struct {
	Generation uint64
	// Lost: this node began the generation, and data may have been lost. The cell of this moment
	// and the next are closed.
	Lost bool
	// Confirmed: this node began the generation on other data than before, and all nodes confirmed that
	// nothing was lost.
	Confirmed bool
	// Foreign: a version of another layout, FoundLayout, wrote what this node found, which counts
	// as lost.
	Foreign     bool
	FoundLayout int64
	Since       uint64             // generation since which no shard has lost data
	LostAt      quantity.StoreTime // store time of the last loss that any shard knows of, 0: none
	Now         quantity.StoreTime // store time; all answers from now on are at or after it
}

// rounds is how often Open looks again because other nodes open the store at the same time.
const rounds = 8

// Open begins to work with the store.
//
// If all shards stand for this region, under one generation and on the servers they were opened on,
// Open takes the store as it is. It puts the node's epoch in force if that is newer. Otherwise Open
// begins another generation in every shard.
//
// Loss is determined for each shard. A shard that stood, with nothing lost, keeps what it knows. A
// shard may have lost data if
//   - it is empty, unless the region never served;
//   - it holds another server's data, and the other nodes do not confirm them;
//   - it is from before the generation that this node knows, or was opened by a node that knew nothing
//     of that generation;
//   - it has forgotten a time that it showed this node;
//   - a version of another layout wrote it.
//
// Then all rights of the current cell and the next count as promised and spent.
//
// Nodes of versions with different layouts cannot share a store: each would open it anew after the
// other. So the one that came last has it. A node that worked with the store, and finds that a
// version of another layout opened it since, gets an error from Open as long as that stands.
//
// The first shard is opened last. Until it has the generation of the others, no node works under
// that generation, so any node may finish what another began.
func (s *session) Open(ctx context.Context, o Opening) (Opened, error) {
	if o.Reserve != nil {
		s.reserve.Store(&o.Reserve)
	}
	var before uint64 // the highest generation at the first look
	for round := range rounds {
		seen := s.times(o.Seen) // before the look, since another node may raise both meanwhile
		all, err := s.look(ctx, o.Node)
		if err != nil {
			return Opened{}, err
		}
		for i := range all {
			all[i].seen = seen[i]
		}
		if err := all.belong(o.Region); err != nil {
			return Opened{}, err
		}
		if err := all.givenUp(s.Generation()); err != nil {
			return Opened{}, err
		}
		if round == 0 {
			before = all.latest()
		}
		if all.isWhole(o.LastGeneration) && all[0].Generation != o.Ended && all[0].Generation > s.retired.Load() {
			last, err := s.take(ctx, all, o)
			if errors.Is(err, ErrUnknownStore) { // another node has opened it since the look
				continue
			}
			return Opened{Generation: all[0].Generation, Since: all.since(), LostAt: all.lostAt(),
				Now: max(all.mark(), last)}, err
		}
		if err := s.noteOlder(ctx, all, o); err != nil {
			return Opened{}, err
		}
		told, changed, err := s.askFirst(ctx, all, o)
		if err != nil || changed {
			s.pledges.end()
		}
		if err != nil {
			return Opened{}, err
		}
		if changed {
			continue
		}
		for i := range all {
			all[i].confirmed = told.Confirmed
		}
		s.pledges.goOn(all)
		opened, err := s.begin(ctx, all, o, before, told.Shown)
		if err != nil || opened.Generation != 0 {
			opened.Confirmed = told.Confirmed && !opened.Lost
			return opened, err
		}
	}
	return Opened{}, fmt.Errorf(
		"open the Redis at %s: other nodes keep opening it; look for two clusters that share it",
		s.address)
}

// times returns the latest time that each shard is known to have shown, in order of the shards: to
// this life of the node, or to the earlier one.
func (s *session) times(earlier []quantity.StoreTime) []quantity.StoreTime {
	all := s.Seen()
	for i := range all {
		switch {
		case len(earlier) == len(all):
			all[i] = max(all[i], earlier[i])
		case len(earlier) > 0:
			all[i] = max(all[i], slices.Min(earlier))
		}
	}
	return all
}

// take works with a store as it stands. It returns the latest time at which any script can have run
// under another epoch.
func (s *session) take(ctx context.Context, all looks, o Opening) (quantity.StoreTime, error) {
	if err := all.keep(ctx, o); err != nil {
		return 0, err
	}
	last, err := s.adopt(ctx, all[0].Generation, o)
	if err == nil {
		s.setIdentity(all, o.Node, all[0].Generation, all[0].Secret)
	}
	return last, err
}

// setIdentity records what this node has opened: the shards that it looked at, under a generation.
func (s *session) setIdentity(all looks, node string, generation uint64, secret string) {
	id := &identity{generation: generation, node: node, secret: secret,
		origin: Origin{ID: originID(secret, all[0].server), Since: all.since(),
			Generation: generation},
		replids: make(map[Shard]string, len(all)),
		begun:   make(map[Shard]quantity.StoreTime, len(all)),
		lostAt:  make(map[Shard]quantity.StoreTime, len(all))}
	for _, l := range all {
		id.replids[l.shard], id.begun[l.shard], id.lostAt[l.shard] = l.server, l.Begun,
			l.LostAt
	}
	s.opened.Store(id)
}

// begin opens the shards under another generation. shown is the latest time that they have shown to
// other nodes, as far as these have told. It returns a zero Opened if another node came first.
func (s *session) begin(ctx context.Context, all looks, o Opening, before uint64,
	shown quantity.StoreTime) (Opened, error) {
	for _, l := range all {
		if l.tooFar() {
			// A generation begun now would hold the store's time, and every cell with it, until the
			// clock gets there.
			return Opened{}, fmt.Errorf(
				"the clock of the Redis at %s is %v from this node's: set both by NTP and start again", l.at, l.apart)
		}
	}
	if err := all.keep(ctx, o); errors.Is(err, ErrUnknownStore) { // another node has opened it since the look
		return Opened{}, nil
	} else if err != nil {
		return Opened{}, err
	}
	if err := s.adoptFound(ctx, all, o); err != nil {
		return Opened{}, err
	}
	now, seen := quantity.StoreTime(s.now().UnixMicro()), max(s.Latest(), all.lastSeen(), shown)
	if s.Latest() == 0 { // this node has heard nothing since it started
		seen = max(seen, o.Latest)
	}
	if seen == 0 { // nor before its start: its own clock is all it has
		seen = now
	}
	c := algorithms.Open{Region: o.Region, Node: o.Node, Epoch: o.Epoch,
		Generation: all.begun(o.LastGeneration, before),
		Seen:       seen, Secret: s.newSecret(), Layout: algorithms.Layout}
	if c.Generation == 0 {
		c.Generation = anotherGeneration(max(o.LastGeneration, all.latest()), now)
	}
	opened := Opened{Generation: c.Generation}
	opened.FoundLayout, opened.Foreign = all.foreignLayout()
	for n := range all {
		l := &all[(n+1)%len(all)]
		if l.Generation != c.Generation {
			c.Expected, c.Lost, c.Replid, c.Mark = l.Generation, all.lost(l, o), l.server, 0
			if !c.Lost {
				c.Mark = l.Mark
			}
			stands, err := token[algorithms.Open, algorithms.Opened](ctx, s, s.timeout, l.shard, c)
			if err != nil {
				return Opened{}, err
			}
			last := n == len(all)-1
			if !stands.OK && (last || stands.Generation != c.Generation ||
				stands.Replid != l.server || stands.Layout != c.Layout) {
				return Opened{}, nil
			}
			l.Opened = stands
		}
		opened.Lost = opened.Lost || l.LostAt != 0 && l.Since == c.Generation
	}
	s.setIdentity(all, o.Node, c.Generation, c.Secret)
	opened.Since, opened.LostAt, opened.Now = all.since(), all.lostAt(), all.mark()
	return opened, nil
}

// keep keeps the texts of the documents that the store is about to name.
func (all looks) keep(ctx context.Context, o Opening) error {
	first := &all[0]
	if o.Keep == nil || o.Guess && first.Generation != 0 && first.Epoch != o.Epoch {
		return nil
	}
	return o.Keep(ctx, first.Generation)
}

// anotherGeneration returns the number of a new generation. last is the last one that is known, now
// the node's clock.
//
// Usually it is the clock's milliseconds, which are larger than the number of any generation
// before, even of one that this node does not remember. If last is larger, because an earlier clock
// was ahead, the number is above last by an amount that the clock's microseconds decide. Two nodes
// may begin generations after two losses, neither knowing of the other's. If both took last + 1,
// rows of the first generation would count as those of the second.
func anotherGeneration(last uint64, now quantity.StoreTime) uint64 {
	if millis := uint64(now / 1000); millis > last {
		return millis
	}
	return last + 1 + uint64(now%algorithms.GenerationStep)
}

// askFirst asks whether a generation may be begun. It returns why not, or what other nodes told. If
// another node has opened the store meanwhile, that may be why not; then changed is true and there
// is no error.
func (s *session) askFirst(ctx context.Context, all looks, o Opening) (told Told, changed bool, err error) {
	if all.isWhole(o.LastGeneration) && all[0].Generation == o.Ended {
		return Told{}, false, nil
	}
	b := all.beginning(o)
	if b.Confirm, err = s.confirmation(ctx, all, o); err != nil {
		return Told{}, false, err
	}
	if o.MayBegin == nil {
		return Told{Confirmed: b.Confirm != nil && len(b.Confirm.Nodes) == 0}, false, nil
	}
	told, refusal := o.MayBegin(ctx, b)
	if refusal == nil {
		return told, false, nil
	}
	again, err := s.look(ctx, o.Node)
	if err == nil && again.beginning(o).Found != b.Found {
		return Told{}, true, nil
	}
	return Told{}, false, refusal
}

// noteOlder has the shards that are older copies of themselves note that, so that no other node decides
// on them while this one asks whether it may begin. A running node's calls do so as well. What this
// node knows counts only of the generation that it worked under.
func (s *session) noteOlder(ctx context.Context, all looks, o Opening) error {
	known := max(o.LastGeneration, s.Generation())
	return s.each(func(i int, shard Shard) error {
		l := &all[i]
		if l.Generation == 0 || l.Generation != known || l.Older || l.Answered >= l.seen {
			return nil
		}
		c := algorithms.Beat{Fence: algorithms.Fence{Generation: known, Epoch: l.Epoch, Node: o.Node,
			Clock: quantity.StoreTime(s.now().UnixMicro()), Seen: l.seen}}
		_, err := token[algorithms.Beat, algorithms.Beaten](ctx, s, s.timeout, shard, c)
		return err
	})
}

// beginning describes the generation that would be begun.
func (all looks) beginning(o Opening) Beginning {
	first := &all[0]
	return Beginning{Found: originID(first.Secret, first.server),
		First: first.Generation == 0 && !all.lost(first, o)}
}

// adoptFound puts an epoch in force in the shards that stand. Otherwise a document that is open
// there would be forgotten with the old generation.
func (s *session) adoptFound(ctx context.Context, all looks, o Opening) error {
	return s.each(func(i int, shard Shard) error {
		if all[i].Generation == 0 {
			return nil
		}
		_, err := s.adoptIn(ctx, shard, all[i].Generation, o)
		// another node has opened it since; the open script finds out
		if errors.Is(err, ErrUnknownStore) {
			return nil
		}
		return err
	})
}

// onlyLook returns a call of the open script that opens nothing, because it expects a generation
// that never is.
func onlyLook(node string) algorithms.Open {
	return algorithms.Open{Expected: 1<<64 - 1, Generation: 1<<64 - 1, Node: node}
}
