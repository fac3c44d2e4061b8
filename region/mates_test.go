package region

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/region/memory/journal"
)

// TestMatesAreCounted: a number of nodes that is not the configured one is warned of once, of too
// few only after a while.
func TestMatesAreCounted(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var m mates
		const more, fewer = "sees more nodes", "sees fewer nodes"
		for i, step := range []struct {
			after time.Duration
			seen  int
			says  string // in a new line; empty: there is none
		}{
			{0, 1, ""}, {10 * time.Second, 3, ""}, {0, 4, more}, {time.Hour, 4, ""}, {0, 5, more},
			{0, 3, ""}, {0, 4, more}, {0, 2, ""}, {matesPatience - 1, 2, ""}, {1, 2, fewer},
			{time.Hour, 2, ""}, {0, 3, ""}, {0, 2, ""}, {matesPatience, 3, ""}, {0, 2, ""},
			{matesPatience, 2, fewer},
		} {
			time.Sleep(step.after)
			log.Reset()
			m.saw(step.seen, 3, slog.New(slog.NewTextHandler(&log, nil)))
			if (step.says == "") != (log.Len() == 0) || !strings.Contains(log.String(), step.says) {
				t.Errorf("step %d, %d seen: %q, want %q", i, step.seen, &log, step.says)
			}
			if m.count() != step.seen {
				t.Errorf("step %d: %d counted of %d", i, m.count(), step.seen)
			}
		}
	})
}

// TestANamesakeIsRefused: a process is started under the name of a node that runs, at another
// address. It does not start; once the other has ended it does.
func TestANamesakeIsRefused(t *testing.T) {
	d := documents.Parse(t, 1, []string{"us: {weight: 1}"}, "name: a, limit: 10, window: 1h")
	inBubble(t, []string{"us/n1", "us/n2"}, func(t *testing.T, c *cluster) {
		first := c.start("us/n1", d)
		try := func() (*Node, error) {
			cfg := c.config("us/n2", d)
			err := cfg.Journal.Close()
			if err != nil {
				t.Fatal(err)
			}
			cfg.Node, cfg.Seeds = "n1", []string{c.gossipAddress("us/n1").String()}
			cfg.Journal, err = journal.Open(filepath.Join(c.dir, "elsewhere"),
				journal.Options{Region: "us", Node: "n1"})
			if err != nil {
				t.Fatal(err)
			}
			n, err := Start(t.Context(), cfg)
			if err != nil {
				_ = errors.Join(cfg.Store.Close(), cfg.Journal.Close(), cfg.PeerListener.Close(),
					cfg.Packets.Close(), cfg.Streams.Close())
			}
			return n, err
		}
		if _, err := try(); err == nil || !strings.Contains(err.Error(), "another process runs as node us/n1") {
			t.Errorf("it starts, or says %v", err)
		}
		if d := first.check(t, request("a")); !d.Allowed {
			t.Errorf("the first one: %+v", d)
		}
		c.stop("us/n1")
		n, err := try()
		if err != nil {
			t.Fatal(err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
}
