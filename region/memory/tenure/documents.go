package tenure

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/barrier"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/repeat"
	"github.com/quotad/quotad/region/memory/journal"
	"github.com/quotad/quotad/region/memory/rules"
)

// Told is a document that a region says is open there, since a time of its store.
type Told struct {
	Epoch  policy.Epoch
	At     quantity.StoreTime
	Fenced []Fenced // regions that it fences, if it is the newest there
}

// knowledge is what a node knows of the limits documents of all regions. Safe for concurrent use.
type knowledge struct {
	region string
	log    *slog.Logger
	now    func() time.Time

	mu     sync.Mutex
	heard  barrier.Heard
	news   bool                    // something was heard since the rules were made
	told   map[string]RegionTold   // what each other region said last
	wanted map[policy.Epoch]string // documents to be fetched, and a region that has each
	// refused holds the documents of other regions that are not taken beside those that are open
	refused map[policy.Epoch]refusal
	unsure  map[string]bool    // regions that must tell before this one serves; nil: none
	newer   bool               // while unsure: another region has a document open that is older than all here
	after   quantity.StoreTime // see barrier.View
	saved   bool               // the journal has all that is open
	file    error              // why the document of the node's file is not open
	fences  fences
	// regions whose acknowledgement some limit waits for, and since when by the node's clock
	waiting map[string]time.Time
}

// RegionTold is what a region said last of its documents.
type RegionTold struct {
	Open []Told // the oldest first
	At   time.Time
	// Refused says why a document of that region is not taken here, nil if all are.
	Refused error
}

// refusal is why a document was not taken while others were open. As long as these are, it is not
// fetched again.
type refusal struct {
	open string
	err  error
}

func newKnowledge(region string, log *slog.Logger, now func() time.Time) *knowledge {
	return &knowledge{region: region, log: log, now: now, heard: barrier.Heard{},
		told: map[string]RegionTold{}, wanted: map[policy.Epoch]string{},
		refused: map[policy.Epoch]refusal{}}
}

// view returns what this region makes of an agenda.
func (k *knowledge) view(a barrier.Agenda, now quantity.StoreTime) *barrier.View {
	k.mu.Lock()
	defer k.mu.Unlock()
	heard := make(barrier.Heard, len(k.heard))
	for region, all := range k.heard {
		heard[region] = maps.Clone(all)
	}
	return &barrier.View{Agenda: a, Region: k.region, Heard: heard, Now: now,
		Unsure: len(k.unsure) > 0, After: k.after, Fence: k.fences.of(a, k.region)}
}

// acknowledge records that from store time at on, this region decides under all documents of the
// agenda.
func (k *knowledge) acknowledge(a barrier.Agenda, at quantity.StoreTime) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range a.Documents() {
		if _, known := k.heard[k.region][one.Epoch()]; !known {
			k.heard.Add(k.region, one.Epoch(), at)
		}
	}
}

// hear takes in which documents are open in another region. It counts the region's acknowledgements
// only if this node knows all documents of that region: an unknown one may give the region more
// than the known ones do.
func (k *knowledge) hear(a barrier.Agenda, region string, open []Told) {
	k.mu.Lock()
	defer k.mu.Unlock()
	told, known := RegionTold{Open: open, At: k.now()}, true
	for _, one := range open {
		switch err := k.check(a, one.Epoch); {
		case a.Has(one.Epoch):
		case err == nil:
			known, k.wanted[one.Epoch] = false, region
		case a.Older(one.Epoch):
			if len(k.unsure) > 0 {
				k.news, k.newer = k.news || !k.newer, true
			}
		default:
			known = false
			told.Refused = fmt.Errorf("document %s of region %s is not taken, %s is open: %w",
				one.Epoch, region, a.Brief(), err)
			if before := k.told[region].Refused; before == nil || before.Error() != told.Refused.Error() {
				k.log.Error("limits document refused", "err", told.Refused)
			}
		}
	}
	k.told[region] = told
	k.news = k.fences.hear(a, k.region, region, open) || k.news
	maps.DeleteFunc(k.refused, func(e policy.Epoch, _ refusal) bool { return !k.tells(e) })
	for _, one := range open {
		if known && k.heard.Add(region, one.Epoch, one.At) {
			k.news = true
		}
	}
	if known {
		k.sure(a, region)
	}
}

// check returns why a document is not taken beside those of an agenda; nil: no reason is known.
func (k *knowledge) check(a barrier.Agenda, e policy.Epoch) error {
	if refused, has := k.refused[e]; has && refused.open == a.String() {
		return refused.err
	}
	return a.Check(e)
}

// tells reports whether any region said last that a document is open there.
func (k *knowledge) tells(e policy.Epoch) bool {
	for _, told := range k.told {
		if slices.ContainsFunc(told.Open, func(t Told) bool { return t.Epoch == e }) {
			return true
		}
	}
	return false
}

// refuse notes why a document is not taken beside those of an agenda.
func (k *knowledge) refuse(a barrier.Agenda, e policy.Epoch, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused[e] = refusal{a.String(), err}
}

// forget drops what concerns documents that are open no longer.
func (k *knowledge) forget(a barrier.Agenda) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, all := range k.heard {
		maps.DeleteFunc(all, func(e policy.Epoch, _ quantity.StoreTime) bool { return !a.Has(e) })
	}
}

// take drains pending work: the documents to fetch, and whether other regions said anything else
// that is new. saved reports whether the journal is up to date.
func (k *knowledge) take() (wanted map[policy.Epoch]string, news, saved bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	wanted, news = k.wanted, k.news
	k.wanted, k.news = map[policy.Epoch]string{}, false
	return wanted, news, k.saved
}

// statement returns the documents of an agenda that this region has acknowledged, or nothing while
// the journal does not have them.
func (k *knowledge) statement(a barrier.Agenda) (all []Told) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, one := range a.Documents() {
		if at, known := k.heard[k.region][one.Epoch()]; known && k.saved {
			all = append(all, Told{Epoch: one.Epoch(), At: at, Fenced: fencesOf(one, a)})
		}
	}
	return all
}

// Hear takes in which documents another region says are open there.
func (t *Tenure) Hear(region string, open []Told) {
	if region == t.config.Region || len(open) == 0 || !slices.Contains(t.Rules().Peers, region) {
		return
	}
	t.known.hear(t.agenda(), region, open)
	repeat.Signal(t.heard)
}

// Statement returns the documents that are open in this region, the oldest first, as it tells the
// others.
func (t *Tenure) Statement() []Told {
	if t.Generation() == 0 {
		return nil
	}
	return t.known.statement(t.agenda())
}

// Source returns the text of the open document with this digest, or nil.
func (t *Tenure) Source(digest [32]byte) []byte {
	for _, d := range t.agenda().Documents() {
		if d.Epoch().Digest == digest {
			return d.Source()
		}
	}
	return nil
}

// save writes documents to the journal, before they are acknowledged.
func (t *Tenure) save(a barrier.Agenda) {
	var all []journal.Document
	for _, d := range a.Documents() {
		all = append(all, journal.Document{Version: d.Version, Source: d.Source()})
	}
	err := t.config.Journal.SaveDocuments(all)
	if err != nil {
		t.config.Log.Error("the journal cannot keep the open limits documents: other regions wait until it can", "err", err)
	}
	t.known.mu.Lock()
	t.known.saved = err == nil
	t.known.mu.Unlock()
}

// Review fetches documents that other regions have and this one does not know, and applies what the
// other regions acknowledged. It does nothing if nothing was heard and no document takes effect.
func (t *Tenure) Review(ctx context.Context) {
	if t.Generation() == 0 {
		return
	}
	wanted, news, saved := t.known.take()
	if !saved {
		t.save(t.agenda())
	}
	// The newest first: no node is to work, not even for a moment, under a document that others have
	// replaced.
	for _, e := range slices.SortedFunc(maps.Keys(wanted), func(a, b policy.Epoch) int { return cmp.Compare(b.Version, a.Version) }) {
		region := wanted[e]
		if err := t.fetch(ctx, region, e); err != nil {
			t.config.Log.Warn("a limits document of another region is not open here yet", "epoch",
				e.String(), "region", region, "err", err)
		}
	}
	v := t.Rules().View
	next := v.Next()
	if news || next > 0 && next <= t.config.Store.Surely() {
		if err := t.review(ctx); err != nil {
			t.known.again()
			t.config.Log.Debug("documents in force are not put into the store yet", "err", err)
		}
	}
}

// wait records the regions that limits wait for. It logs them if they have changed.
func (k *knowledge) wait(v *barrier.View) {
	limits := v.Waiting()
	k.mu.Lock()
	defer k.mu.Unlock()
	before := len(k.waiting)
	maps.DeleteFunc(k.waiting, func(region string, _ time.Time) bool { return limits[region] == 0 })
	changed := len(k.waiting) != before
	for region := range limits {
		if _, known := k.waiting[region]; !known {
			if k.waiting == nil {
				k.waiting = map[string]time.Time{}
			}
			k.waiting[region], changed = k.now(), true
		}
	}
	switch {
	case changed && len(k.waiting) == 0:
		k.log.Info("limits wait for no region any more", "open", v.Agenda.String())
	case changed:
		k.log.Info("limits wait for regions to acknowledge a limits document, and have the smaller of their old and new parts meanwhile",
			"limits_by_region", limits, "open", v.Agenda.String())
	}
}

// Waiting returns the regions whose acknowledgement some limit waits for, with how long it has
// waited.
func (t *Tenure) Waiting() map[string]time.Duration {
	t.known.mu.Lock()
	defer t.known.mu.Unlock()
	all := make(map[string]time.Duration, len(t.known.waiting))
	for region, since := range t.known.waiting {
		all[region] = t.config.Now().Sub(since)
	}
	return all
}

// again makes the next Review look once more at what was heard.
func (k *knowledge) again() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.news = true
}

// review makes new rules of what is now known of the documents, and closes documents that bind no
// limit any more.
func (t *Tenure) review(ctx context.Context) error {
	turn := t.begin()
	defer turn.end()
	old := t.agenda()
	a := t.binding(old)
	if a.String() != old.String() {
		if err := turn.putInForce(ctx, a); err != nil {
			return err
		}
		t.known.forget(t.agenda())
		t.config.Log.Info("limits document in force", "epoch", t.agenda().Base().Epoch().String(), "open",
			t.Rules().Epoch)
		return nil
	}
	turn.apply(rules.New(t.known.view(a, t.config.Store.Surely()), t.config.Store.Shards()))
	return errors.Join(turn.noteSure(ctx), t.noteFence(ctx))
}

// parse reads a document that another node gave to the store or to another region.
func (t *Tenure) parse(name string, source []byte) (*policy.Document, error) {
	d, err := policy.ParseOpen(name, source)
	if f, is := errors.AsType[*policy.Fault](err); is {
		t.config.Panicked("document", f)
	}
	return d, err
}

// fetch opens a document that another region has. If the document cannot be open beside those that
// are, fetch records why. After any other failure the document is asked for again, because the one
// node that answered may be at fault.
func (t *Tenure) fetch(ctx context.Context, region string, e policy.Epoch) error {
	a := t.agenda()
	source, err := t.config.Fetch(ctx, region, e)
	if err != nil {
		return err
	}
	d, err := t.parse(fmt.Sprintf("document %s of region %s", e, region), source)
	if err != nil {
		return err
	}
	if d.Epoch() != e {
		return fmt.Errorf("region %s calls %s document %s: run one version of quotad in both",
			region, d.Epoch(), e)
	}
	if err = t.learn(ctx, d, "region "+region); !barrier.Refused(err) {
		return err
	}
	t.known.refuse(a, e, errors.Unwrap(err)) // hear says of which document, and beside which
	return nil
}
