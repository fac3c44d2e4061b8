package region_test

import (
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region"
)

// TestAClockThatIsAheadAtTheStart: a node whose clock is ahead of all that it hears does not open its
// store, until the clock is right or the operator trusts it. One that is not ahead of somebody does, and
// so does one that hears nobody.
func TestAClockThatIsAheadAtTheStart(t *testing.T) {
	d := documents.Parse(t, 1, halves, "name: m, limit: 1000, window: 1m")
	const day = 24 * time.Hour
	always := func(ahead time.Duration) func(time.Duration) time.Duration {
		return func(time.Duration) time.Duration { return ahead }
	}
	for name, at := range map[string]struct {
		ahead                  func(since time.Duration) time.Duration // eu/n1
		other                  time.Duration                           // us/n1
		alone, trusted, starts bool
	}{
		"right":           {ahead: always(0), starts: true},
		"a day ahead":     {ahead: always(day)},
		"trusted":         {ahead: always(day), trusted: true, starts: true},
		"nobody is heard": {ahead: always(day), alone: true, starts: true},
		"half a minute":   {ahead: always(30 * time.Second), starts: true},
		"the other, too":  {ahead: always(day), other: day, starts: true},
		"behind":          {ahead: always(-day), starts: true},
		"for ten seconds": {ahead: func(since time.Duration) time.Duration {
			if since < 10*time.Second {
				return day
			}
			return 0
		}, starts: true},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
				begun := time.Now()
				if !at.alone {
					c.twins["us"] = twinAhead("r", at.other)
					c.start("us/n1", d, c.clockAhead(func() time.Duration { return at.other }))
				}
				ahead := func() time.Duration { return at.ahead(time.Since(begun)) }
				c.twins["eu"] = twinOf("r", ahead)
				_, err := c.tryStart("eu/n1", d, c.clockAhead(ahead), func(cfg *region.Config) {
					cfg.TrustClock, cfg.Alone = at.trusted, at.alone
				})
				if (err == nil) != at.starts || err != nil && !strings.Contains(err.Error(), "clock is 24h0m0s ahead of that of us/n1") {
					t.Errorf("starts: %v", err)
				}
				if name == "for ten seconds" && time.Since(begun) < 9*time.Second {
					t.Errorf("it started after %v", time.Since(begun))
				}
			})
		})
	}
}
