package region_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/memory/journal"
)

// under has a node start under a name and with a journal of its own, whatever its host is called.
func (c *cluster) under(name, file string) func(*region.Config) {
	return func(cfg *region.Config) {
		err := cfg.Journal.Close()
		if cfg.Node = name; err == nil {
			cfg.Journal, err = journal.Open(filepath.Join(c.Dir, file),
				journal.Options{Region: cfg.Region, Node: name})
		}
		suite.Must(c.t, err)
	}
}

// TestANamesakeIsRefused: a process is started under the name of a node that runs, at another
// address. It does not start; once the other has ended it does.
func TestANamesakeIsRefused(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: a, limit: 10, window: 1h")
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		first := c.start("us/n1", d)
		same := c.under("n1", "elsewhere")
		if _, err := c.tryStart("us/n2", d, same); err == nil || !strings.Contains(err.Error(), "another process runs as node us/n1") {
			t.Errorf("it starts, or says %v", err)
		}
		if d := first.check(t, request("a")); !d.Allowed {
			t.Errorf("the first one: %+v", d)
		}
		c.stop("us/n1")
		c.start("us/n2", d, same)
	})
}

// TestASecondProcessOnTheSameRedis: a node that calls no others is not ready while another one uses
// its Redis of which it does not know, and says why. A process with the name of one that runs does
// not start, without gossip. After a crash a node starts again at once, and with a new journal as
// soon as it is sure that nobody runs under its name.
func TestASecondProcessOnTheSameRedis(t *testing.T) {
	d := documents.Parse(t, 1, alone, "name: minute, limit: 100, window: 1m")
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		begin := func(name, as, file string) (*running, error) {
			return c.tryStart(name, d, c.under(as, file), func(cfg *region.Config) { cfg.Seeds = nil })
		}
		first, err := begin("us/n1", "n1", "first")
		if err != nil || first.Ready() != nil {
			t.Fatal(err, first.Ready())
		}
		if _, err := begin("us/n2", "n1", "second"); err == nil ||
			!strings.Contains(err.Error(), "another process uses this region's Redis as node us/n1") {
			t.Errorf("a second us/n1: %v", err)
		}
		other, err := begin("us/n2", "n2", "other")
		suite.Must(t, err)
		if err := other.Ready(); err == nil || !strings.Contains(err.Error(), "node us/n1 used this region's Redis") {
			t.Errorf("another node without seeds: %v", err)
		}
		time.Sleep(time.Minute)
		if err := other.Ready(); err == nil || first.Ready() != nil {
			t.Errorf("a minute later: %v, and the first %v", err, first.Ready())
		}
		suite.Must(t, first.Close())
		time.Sleep(12 * time.Second)
		if err := other.Ready(); err != nil {
			t.Errorf("after the first has ended: %v", err)
		}
		suite.Must(t, other.Close())
		for _, tc := range []struct {
			dir   string
			takes time.Duration
		}{{"other", 0}, {"lost", 1500 * time.Millisecond}} {
			begun := time.Now()
			n, err := begin("us/n2", "n2", tc.dir)
			suite.Must(t, err)
			if took := time.Since(begun).Truncate(500 * time.Millisecond); took != tc.takes {
				t.Errorf("with the journal %s a node started after %v, want %v", tc.dir, took, tc.takes)
			}
			suite.Must(t, n.Close())
		}
	})
}

// TestAllUnitsAreHere: once a region holds all units of a limit and has used them, it tells no caller
// that others might spare some.
func TestAllUnitsAreHere(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions[:2], "name: minute, limit: 10, window: 1m, lending_limit: 1")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		for range 20_000 {
			got := us.check(t, request("a"))
			if !got.Allowed && got.Share == 10 {
				if left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)); got.RetryAfter < left-time.Second {
					t.Errorf("told %v, %v before the window's end", got.RetryAfter, left)
				}
				return
			}
			time.Sleep(100 * time.Microsecond)
		}
		t.Error("us did not get all units")
	})
}

// TestNoMoreMayCome: a region that has borrowed all that others may lend it, and has used it, tells
// the window's end, also when nobody has asked for a while and the node knows no more of the bucket.
func TestNoMoreMayCome(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions[:2], "name: day, limit: 100, window: 24h")
	started(t, d, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		us := c.running["us/n1"]
		for used := 0; used < 97; time.Sleep(10 * time.Millisecond) {
			if us.check(t, request("a")).Allowed {
				used++
			}
		}
		for _, pause := range []time.Duration{time.Second, time.Minute} {
			time.Sleep(pause)
			got := us.check(t, request("a"))
			left := time.Until(time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour))
			if got.Allowed || got.Share != 97 || got.RetryAfter < left-time.Second {
				t.Errorf("after %v: %+v, %v before the window's end", pause, got, left)
			}
		}
	})
}
