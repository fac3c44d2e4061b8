package second

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/store"
	"github.com/quotad/quotad/region/memory/tenure"
	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// lookEvery is how often a node looks at what gossip shows of the nodes of its region, and asks
	// them if one has another store.
	lookEvery = 500 * time.Millisecond
	// askEvery is how many looks later they are asked in any case.
	askEvery = 20
	// patience bounds the wait for the answers of the nodes of this region.
	patience = 500 * time.Millisecond
	// startPatience bounds that wait when this node starts, and the time for which a question that
	// remained open is asked again then, every startPoll.
	startPatience = 3 * time.Second
	startPoll     = 100 * time.Millisecond
	// sayEvery is the shortest time between two log lines that say the same.
	sayEvery = time.Minute
)

// Tenure is what this node's tenure does for its watch.
type Tenure interface {
	Stop(tenure.Stopped)
	GoOn()
	Stopped() *tenure.Stopped
}

// Config holds what a watch consists of.
type Config struct {
	Self   string // REGION/NODE
	Tenure Tenure
	// Own returns the store that this node opened. Verify reports whether it answers this node now.
	Own    func() store.Origin
	Verify func(context.Context) bool
	// Renew begins another generation of this node's store, of which nothing was lost, unless the
	// store is no longer under the given one.
	Renew func(ctx context.Context, generation uint64) error
	// Known is the highest generation of this region's store that this node's journal knows.
	Known func() uint64
	// Shown is the latest time that this region's store has answered this node with.
	Shown func() quantity.StoreTime
	// Alone says that --bootstrap asks nobody.
	Alone bool
	// Mates asks all other nodes of this region, until ctx ends, and unless confirm is nil, to
	// confirm that. Everybody asks the nodes of all other regions, and says how many there are.
	Mates    func(ctx context.Context, confirm *store.Confirmation) []peer.StoreAnswer
	Everyone func(context.Context) (answers []peer.StoreAnswer, asked int)
	// Hearsay returns what gossip shows of the other nodes of this region.
	Hearsay func() []peer.StoreAnswer
	// Join waits until gossip has called the nodes that it is to call. With wait it waits until
	// gossip has found another node, or ctx ends. It reports whether there is any node to call.
	Join func(ctx context.Context, wait bool) (any bool)
	// Tell tells the other nodes by gossip which store this node has, and whether it stopped.
	Tell func()
	Log  *slog.Logger
}

// Watch finds out that the nodes of this node's region decide with two stores. Safe for concurrent
// use.
type Watch struct {
	config Config
	due    chan struct{} // holds a value while the other nodes are to be asked at once

	asking sync.Mutex // held while the others are asked and judged
	judge  judge

	telling sync.Mutex // held while the others are told
	told    told

	mu        sync.Mutex
	rivals    []Rival
	outlasted []string
	said      map[string]time.Time // when a line was last logged, by what it is about
	stops     int64
	known     map[string]uint64 // generations of other regions' stores
	verified  verification
}

// New returns a watch that asks nobody yet. Call it before the store is opened.
func New(c Config) *Watch {
	return &Watch{config: c, due: make(chan struct{}, 1), said: map[string]time.Time{},
		known: map[string]uint64{}, judge: judge{before: c.Known()}}
}

// Look makes Run ask the other nodes at once, if gossip shows one with another store. Call it when
// that may have changed.
func (w *Watch) Look() { repeat.Signal(w.due) }

// Run asks the other nodes again and again, until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	every := time.NewTicker(lookEvery)
	defer every.Stop()
	for looks := 1; ; looks++ {
		select {
		case <-ctx.Done():
			return
		case <-w.due:
		case <-every.C:
		}
		w.tell()
		if w.suspects() || looks%askEvery == 0 {
			w.Ask(ctx)
		}
	}
}

// told is what gossip was last told of this node's store.
type told struct {
	origin  store.Origin
	stopped bool
}

// tell makes gossip tell which store this node has, if that has changed.
func (w *Watch) tell() {
	w.telling.Lock()
	defer w.telling.Unlock()
	now := told{w.config.Own(), w.config.Tenure.Stopped() != nil}
	if now != w.told {
		w.told = now
		w.config.Tell()
	}
}

// suspects reports whether gossip shows a node with another store, or this node has stopped.
func (w *Watch) suspects() bool {
	w.asking.Lock()
	defer w.asking.Unlock()
	own := w.config.Own()
	w.judge.had = remember(w.judge.had, own.ID)
	return w.judge.stopped() || len(others(own, w.judge.news(w.config.Hearsay()), true)) > 0
}

// AskFirst does what Ask does, for a node that has opened its store and does not serve yet. It
// waits longer for the other nodes. It asks again while this node's own store does not confirm
// itself, or another node's other store does not confirm itself to that node. Both may be slow, and
// if an older store decides a moment later, there would be two.
func (w *Watch) AskFirst(ctx context.Context) {
	for end := time.Now().Add(startPatience); ; {
		if w.ask(ctx, startPatience) || !time.Now().Before(end) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(startPoll):
		}
	}
}

// Ask asks the other nodes of this region which store they decide with. By their answers this node
// stops or goes on.
func (w *Watch) Ask(ctx context.Context) { w.ask(ctx, patience) }

// ask asks the other nodes and waits for them for at most that time. It returns false if the
// question remains open: this node's own store did not confirm itself, or another one did not.
func (w *Watch) ask(ctx context.Context, wait time.Duration) (settled bool) {
	w.asking.Lock()
	defer w.asking.Unlock()
	w.tell()
	defer w.tell()
	own := w.config.Own()
	asking, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	answers := w.config.Mates(asking, nil)
	if ctx.Err() != nil {
		return false
	}
	hearsay := unanswered(w.config.Hearsay(), answers)
	// An answer may be about a store that this node must open first: the successor of its own. So
	// its own store is asked last.
	differs := len(others(own, answers, false))+len(others(own, hearsay, true)) > 0
	if differs && !w.judge.stopped() && !w.config.Verify(ctx) || w.config.Own() != own {
		return false
	}
	before := w.judge.to
	rivals := w.judge.verdict(own, answers, hearsay, time.Now())
	w.mu.Lock()
	w.rivals, w.outlasted = rivals, slices.Clone(w.judge.outlasted)
	w.mu.Unlock()
	w.carryOut(own, before, rivals)
	w.renew(ctx, own, rivals)
	return w.judge.stopped() || !slices.ContainsFunc(answers, func(a peer.StoreAnswer) bool {
		return a.Use == peer.StoreUnsure && a.Origin.ID != "" && a.Origin.ID != own.ID
	})
}

// renew begins another generation of this node's store if the node goes on beside a store of a
// later generation. The nodes of that store may have asked other nodes what they know, and a node
// that answered takes no rows of an earlier generation any more.
func (w *Watch) renew(ctx context.Context, own store.Origin, rivals []Rival) {
	for _, r := range rivals {
		later := !r.Hearsay && r.Origin.Generation > own.Generation
		if w.judge.stopped() || !later || !w.mayTell("renewed "+r.Origin.ID) {
			continue
		}
		if err := w.config.Renew(ctx, own.Generation); err != nil {
			w.config.Log.Error("the store's generation cannot be renewed: other regions may take "+
				"none of its rights, because they heard of a second store; restart this node",
				"err", err)
		}
		return
	}
}

// unanswered returns what gossip shows of nodes that did not answer.
func unanswered(hearsay, answers []peer.StoreAnswer) []peer.StoreAnswer {
	return slices.DeleteFunc(hearsay, func(h peer.StoreAnswer) bool {
		return slices.ContainsFunc(answers, func(a peer.StoreAnswer) bool { return a.Node == h.Node })
	})
}

// carryOut makes this node stop or go on, and logs what it found.
func (w *Watch) carryOut(own store.Origin, before *Rival, rivals []Rival) {
	to := w.judge.to
	switch {
	case to != nil:
		why := stopped(own, *to)
		if w.config.Tenure.Stopped() == nil {
			w.mu.Lock()
			w.stops++
			w.mu.Unlock()
		}
		w.config.Tenure.Stop(why)
		if w.mayTell("stopped " + to.Origin.ID) {
			w.config.Log.Error("this node decides as without its store", "why", why.Error())
		}
	case before != nil:
		w.config.Tenure.GoOn()
		w.config.Log.Warn("this node uses its store again: no other node of this region confirms " +
			"that it decides with another store")
	}
	if to != nil {
		return
	}
	for _, r := range rivals {
		if w.mayTell(r.Node + " " + r.Origin.ID) {
			w.config.Log.Error("the region has two stores, and this node goes on with its own",
				"why", rivalWords(own, r))
		}
	}
}

// stopped returns why this node stops for another.
func stopped(own store.Origin, to Rival) tenure.Stopped {
	how := "decides"
	if to.Hearsay {
		how = "decides, as gossip alone says,"
	}
	return tenure.Stopped{
		Why: fmt.Sprintf("the region has two stores: %s %s with store %s, which is older than this "+
			"node's store %s", to.Node, how, to.Origin.ID, own.ID),
		Next: "give all nodes of the region the same redis.url and start anew those whose " +
			"redis.url was wrong; end " + to.Node + " if its store is the wrong one"}
}

// rivalWords says what this node has found while it goes on.
func rivalWords(own store.Origin, r Rival) string {
	does := "decides with it, and is to stop"
	switch {
	case r.Stopped:
		does = "has stopped using it"
	case r.Hearsay:
		does = "decides with it, as gossip says, but does not answer at its peer port: mend its " +
			"advertise.peer or the network, for both may admit the region's whole share"
	}
	return fmt.Sprintf("this node goes on with store %s, and %s has store %s: "+
		"it %s; give all nodes of the region the same redis.url", own.ID, r.Node, r.Origin.ID, does)
}

// mayTell reports whether a line may be logged, at most once a minute about the same thing.
func (w *Watch) mayTell(about string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for a, at := range w.said {
		if now.Sub(at) >= sayEvery {
			delete(w.said, a)
		}
	}
	if _, said := w.said[about]; said || len(w.said) >= maxSaid {
		return false
	}
	w.said[about] = now
	return true
}

// maxSaid bounds the lines that are remembered to have been logged.
const maxSaid = 64

// Status is what a watch knows.
type Status struct {
	Rivals []Rival // nodes of this region with another store, when they were last asked
	Stops  int64   // how often this node stopped since its start
}

// Status returns what the watch knows.
func (w *Watch) Status() Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	return Status{Rivals: slices.Clone(w.rivals), Stops: w.stops}
}
