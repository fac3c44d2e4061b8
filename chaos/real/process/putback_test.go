//go:build !race

package process

import (
	"fmt"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// putBack returns a document in which us has so much of a hundred of a limit, and eu the rest; 0: the
// document has no such limit.
func putBack(version int, window string, us int) string {
	document := fmt.Sprintf("version: %d\nregions: {us: {weight: 1}, eu: {weight: 1}}\nlimits:\n"+
		"  - {name: other, domain: elsewhere, key: [other], algorithm: fixed_window, limit: 5, window: 1s}\n", version)
	if us == 0 {
		return document
	}
	return document + fmt.Sprintf("  - {name: split, domain: api, key: [split], algorithm: fixed_window, limit: 100, window: %s, "+
		"lending_limit: 0, weights: {us: %d, eu: %d}, on_store_failure: deny}\n", window, us, 100-us)
}

// TestALimitPutBackWhileARegionIsCutOff: us has nearly all of a limit when it is cut off. The
// operator takes the limit out and, windows later, gives nearly all of it to eu, whose node is started
// again in between. us goes on with what it has, and eu has the least of what it was given, until they
// hear each other.
func TestALimitPutBackWhileARegionIsCutOff(t *testing.T) {
	suite.Long(t)
	t.Parallel()
	const window = 2 * time.Second
	p := raisePair(t, putBack(1, "2s", 99), 1)
	b := newBucket(t, "split", "1", fixed(100, window))
	_, stopUS := b.offer(p.Fleet, 75, p.us)
	defer stopUS()
	p.cut()
	p.applies("0", putBack(2, "2s", 0))
	b.windows(3)
	p.eu.Kill()
	must(t, p.eu.Start(t.Context()))
	b.windows(3)
	p.applies("0", putBack(3, "2s", 1))
	_, stopEU := b.offer(p.Fleet, 75, p.eu) // before, nothing limited eu
	defer stopEU()
	b.reaches("cut off", split{99, 1})
	p.heal()
	b.reaches("healed", split{1, 99})
}

// TestALimitPutBackAtOnce: us has used what it has of a limit. The operator takes the limit out, gives
// nearly all of it to eu, and both regions hear of everything within the window. What us used is not
// admitted once more.
func TestALimitPutBackAtOnce(t *testing.T) {
	t.Parallel()
	p := raisePair(t, putBack(1, "720h", 99), 1)
	b := newBucket(t, "split", "1", fixed(100, month))
	b.uses(99, p.us)
	p.applies("1m", putBack(2, "720h", 0))
	p.applies("1m", putBack(3, "720h", 1))
	b.uses(1, p.eu)
	b.wantUsed("put back", p.us, p.eu)
}
