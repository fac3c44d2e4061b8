//go:build !race

package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// changing is a limit that a document changes into another, and what both promise.
type changing struct {
	name        string
	before, now string
	rules       [2]rule
	always      rule // whatever is in force
}

const changesWindow = 2 * time.Second

func windows(units int64, window time.Duration) rule { return rule{units: units, window: window} }

func tokens(units, burst int64) rule { return rule{units, burst, changesWindow} }

// theChanges are one limit for each kind of change. A limit that gets a longer window keeps its
// units, so the first rule holds whatever is in force.
var theChanges = []changing{
	{name: "lowered", before: "fixed_window, limit: 80, window: 2s", now: "fixed_window, limit: 30, window: 2s",
		rules: [2]rule{windows(80, changesWindow), windows(30, changesWindow)}, always: windows(80, changesWindow)},
	{name: "swapped", before: "fixed_window, limit: 60, window: 2s, weights: {us: 9, eu: 1, ap: 2}",
		now:   "fixed_window, limit: 60, window: 2s, weights: {us: 1, eu: 9, ap: 2}",
		rules: [2]rule{windows(60, changesWindow), windows(60, changesWindow)}, always: windows(60, changesWindow)},
	{name: "longer", before: "fixed_window, limit: 60, window: 2s", now: "fixed_window, limit: 60, window: 4s",
		rules: [2]rule{windows(60, changesWindow), windows(60, 2*changesWindow)}, always: windows(60, changesWindow)},
	{name: "otherwise", before: "fixed_window, limit: 60, window: 2s", now: "token_bucket, limit: 60, window: 2s, burst: 20",
		rules: [2]rule{windows(60, changesWindow), tokens(60, 20)}, always: windows(80, changesWindow)},
	{name: "burst", before: "token_bucket, limit: 40, window: 2s, burst: 60", now: "token_bucket, limit: 40, window: 2s, burst: 9",
		rules: [2]rule{tokens(40, 60), tokens(40, 9)}, always: tokens(40, 60)},
	{name: "reserved", before: "fixed_window, limit: 60, window: 2s, on_store_failure: local, local_reserve: 0",
		now:   "fixed_window, limit: 60, window: 2s, on_store_failure: local, local_reserve: 0.5",
		rules: [2]rule{windows(60, changesWindow), windows(60, changesWindow)}, always: windows(60, changesWindow)},
}

// changesDocument returns the first or second document, of a version, for some regions.
func changesDocument(version, which int, regions ...string) string {
	var b strings.Builder
	weights := map[string]int{"us": 2, "eu": 2, "ap": 1}
	fmt.Fprintf(&b, "version: %d\nregions:\n", version)
	for _, r := range regions {
		fmt.Fprintf(&b, "  %s: {weight: %d}\n", r, weights[r])
	}
	if !slices.Contains(regions, "ap") {
		b.WriteString("removed: [ap]\n")
	}
	b.WriteString("limits:\n")
	for _, c := range theChanges {
		terms := []string{c.before, c.now}[which]
		if !slices.Contains(regions, "ap") {
			terms = strings.Replace(terms, ", ap: 2", "", 1)
		}
		if !strings.Contains(terms, "on_store_failure") {
			terms += ", on_store_failure: deny"
		}
		fmt.Fprintf(&b, "  - {name: %s, domain: api, key: [%s], algorithm: %s}\n", c.name, c.name, terms)
	}
	return b.String()
}

var everywhere = []string{"us", "eu", "ap"}

// changes is a fleet whose document changes under load.
type changes struct {
	*Fleet
	t        *testing.T
	accounts []*account

	mu      sync.Mutex
	which   []int       // by version, whether it was the first or the second document
	settled [2][]during // times during which every node worked under the first or second document alone
	since   int64       // the present such time; 0: there is none
	applied time.Time
	open    []during // times during which a document was open because a region was cut off
}

// TestChanges changes the limits document of three regions in every way that there is, under load
// from all of them, back and forth, several documents at once, while a region is cut off, while a
// node is killed and while a Redis loses its data. No limit is exceeded whatever is in force, and
// none by what the only document in force says.
func TestChanges(t *testing.T) {
	t.Parallel()
	c := &changes{t: t, which: []int{0, 0}, Fleet: raise(t, Config{Limits: changesDocument(1, 0, everywhere...), Lines: true,
		Regions: []RegionConfig{{Name: "us"}, {Name: "eu"}, {Name: "ap"}}})}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var following sync.WaitGroup
	following.Go(func() { c.follow(ctx) })
	var stops []func()
	for _, l := range theChanges {
		one := &account{}
		c.accounts = append(c.accounts, one)
		for _, r := range c.Regions {
			b := newBucket(t, l.name, "1", fixed(100, changesWindow))
			_, stop := b.offerTo(c.Fleet, 30, one.note, r.Nodes...)
			stops = append(stops, stop)
		}
	}
	plays := c.plays()
	if *times == 0 { // make changes plays all
		plays = plays[:1]
	}
	for round := range timesOr(1) {
		for _, play := range plays {
			play.do()
			took := c.settle()
			t.Logf("round %d: %-26s the last document is in force alone after %v", round+1, play.name,
				took.Round(100*time.Millisecond))
		}
	}
	for _, stop := range stops {
		stop()
	}
	end()
	following.Wait()
	c.judge()
}

// play is one way in which documents change.
type play struct {
	name string
	do   func()
}

func (c *changes) plays() []play {
	us, eu, ap := c.Region("us").Nodes[0], c.Region("eu").Nodes[0], c.Region("ap").Nodes[0]
	cut := func(fault Fault) {
		for _, other := range []string{"us", "eu"} {
			c.Lines.Set("ap", other, fault)
			c.Lines.Set(other, "ap", fault)
		}
	}
	return []play{
		{"all limits", func() { c.apply(us, 1, everywhere...) }},
		{"a region is cut off", func() {
			cut(Fault{CutUDP: true, CutTCP: true})
			c.apply(us, 0, everywhere...)
			pause(c.t, changesWindow)
			open := during{from: time.Now().UnixMicro()}
			pause(c.t, 4*changesWindow)
			open.to = time.Now().UnixMicro()
			cut(Fault{})
			c.open = append(c.open, open)
		}},
		{"two at once", func() {
			var both sync.WaitGroup
			first, second := c.next(0, everywhere...), c.next(1, everywhere...)
			both.Go(func() { c.post(us, first) })
			both.Go(func() { c.post(eu, second) })
			both.Wait()
		}},
		{"a Redis loses its data", func() {
			c.apply(us, 0, everywhere...)
			suite.Must(c.t, c.Region("eu").Redis.Client.FlushAll(c.t.Context()).Err())
		}},
		{"back and forth", func() {
			for i, at := range []*Node{us, eu, ap} {
				c.apply(at, 1-i%2, everywhere...)
				pause(c.t, 300*time.Millisecond)
			}
		}},
		{"back", func() { c.apply(eu, 0, everywhere...) }},
		{"a node is killed", func() {
			c.apply(us, 1, everywhere...)
			eu.Kill()
			pause(c.t, time.Second)
			suite.Must(c.t, eu.Start(c.t.Context()))
		}},
		{"a region leaves", func() { c.apply(eu, 0, "us", "eu") }},
		{"and comes back", func() { c.apply(us, 1, everywhere...) }},
	}
}

// version returns the latest version. The caller holds the lock.
func (c *changes) version() int { return len(c.which) - 1 }

// next returns the next document. From now on none is in force alone, until follow finds one.
func (c *changes) next(which int, regions ...string) string {
	c.unsettled()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.which = append(c.which, which)
	return changesDocument(c.version(), which, regions...)
}

// apply gives a node the next document.
func (c *changes) apply(n *Node, which int, regions ...string) { c.post(n, c.next(which, regions...)) }

// post gives a node a document. Of two at once the older may come second, and be refused.
func (c *changes) post(n *Node, document string) {
	code, answer := post(c.t, n, document)
	if code != http.StatusOK && !strings.Contains(answer, "a newer document is in force") {
		c.t.Errorf("%s: %d %s", n.name, code, answer)
	}
}

// post gives a node a document, and returns its answer.
func post(t *testing.T, n *Node, document string) (code int, answer string) {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+n.Admin+"/v1/apply", strings.NewReader(document))
	suite.Must(t, err)
	q.Header.Set("Content-Type", "application/yaml")
	r, err := http.DefaultClient.Do(q)
	suite.Must(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	suite.Must(t, err)
	return r.StatusCode, string(body)
}

func (c *changes) unsettled() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since != 0 {
		of := c.which[c.version()]
		c.settled[of] = append(c.settled[of], during{c.since, time.Now().UnixMicro()})
		c.since = 0
	}
	c.applied = time.Now()
}

// settle waits until the latest document is in force alone, and some windows more. It returns how
// long that took from when the document was made.
func (c *changes) settle() (took time.Duration) {
	c.t.Helper()
	suite.Eventually(c.t, "one document is in force alone", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		took = time.UnixMicro(c.since).Sub(c.applied)
		return c.since != 0
	})
	pause(c.t, 3*changesWindow)
	return took
}

// follow finds out which document every node works under alone.
func (c *changes) follow(ctx context.Context) {
	for ctx.Err() == nil {
		asked := time.Now()
		version, alone := c.alone(ctx)
		c.mu.Lock()
		if alone && version == c.version() && c.since == 0 && asked.After(c.applied) {
			c.since = time.Now().UnixMicro()
		}
		c.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
	c.unsettled()
}

// alone returns the version that is the only one open at all nodes. A node that does not answer
// has none.
func (c *changes) alone(ctx context.Context) (version int, alone bool) {
	for i, n := range nodesOf(c.Regions...) {
		var s struct{ Epoch string }
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Admin+"/v1/status", nil)
		suite.Must(c.t, err)
		r, err := http.DefaultClient.Do(q)
		if err != nil {
			return 0, false
		}
		err = json.NewDecoder(r.Body).Decode(&s)
		_ = r.Body.Close()
		var one int
		if _, bad := fmt.Sscanf(s.Epoch, "%d-", &one); err != nil || bad != nil || strings.Contains(s.Epoch, "+") ||
			i > 0 && one != version {
			return 0, false
		}
		version = one
	}
	return version, true
}

// judge holds what was admitted against all that was promised.
func (c *changes) judge() {
	all := during{0, math.MaxInt64}
	for i, l := range theChanges {
		a := c.accounts[i]
		admitted := a.sorted()
		doubt := a.unanswered + a.local
		excess, when := l.always.broken(admitted, []during{all})
		if excess > 0 {
			c.t.Errorf("%s: %d units above what any document promises, at %s", l.name, excess, when)
		}
		for which, r := range l.rules {
			if excess, when := r.broken(admitted, c.settled[which]); excess > 0 {
				c.t.Errorf("%s: %d units above %+v of document %d, which alone is in force, at %s", l.name, excess, r, which+1, when)
			}
		}
		c.t.Logf("%-10s %5d units admitted, %d in doubt", l.name, len(admitted), doubt)
		if l.name == "reserved" {
			c.wantLesserSplit(admitted)
		}
	}
}

// wantLesserSplit checks that regions use all of the lesser split while a document is open: half of
// the limit reserved is kept out of the stores in one document, and none in the other.
func (c *changes) wantLesserSplit(admitted []admission) {
	const lesser = 30
	for _, open := range c.open {
		used := 100 * admittedIn(admitted, open, changesWindow) / lesser
		c.t.Logf("while a document was open, %.1f %% of the lesser split was used", used)
		if used < 97 || used > 100 {
			c.t.Errorf("%.1f %% of the lesser split was used while a document was open", used)
		}
	}
}
