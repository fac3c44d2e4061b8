package region_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/decide/admit"
)

// longAccounts are accounts of hundreds of bytes that differ in one byte at one end.
func longAccounts() []string {
	x := strings.Repeat("x", 250)
	return []string{x, x + "y", "y" + x, strings.Repeat("x", policy.MaxValueBytes),
		strings.Repeat("x", policy.MaxValueBytes+1)}
}

// TestLongKeysAreShort: keys of hundreds of bytes have their own buckets, and each is found again
// by its descriptors. Neither the bucket's id nor its key in the store is long.
func TestLongKeysAreShort(t *testing.T) {
	oneNode(t, documents.Parse(t, 1, alone, "name: m, limit: 100, window: 1h"), func(t *testing.T, c *cluster, n *running) {
		for i, account := range longAccounts() {
			for range i + 1 {
				n.check(t, request(account))
			}
		}
		for i, account := range longAccounts() {
			q := request(account)
			if used := n.used(t, "m", q); used != quantity.Units(i+1) {
				t.Errorf("account %d: %d used, want %d", i, used, i+1)
			}
			if key := n.tenure.Rules().Match(q.Domain,
				q.Descriptors)[0].Target.Key; len(key) > 160 {
				t.Errorf("account %d: a key of %d bytes", i, len(key))
			}
		}
	})
}

// lines is a log that a test can read while it is written.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *lines) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.buf.String(), text)
}

// TestHintsOfLongKeysAreBroadcast: a bucket's id may be longer than what gossip takes as the key of
// a change.
func TestHintsOfLongKeysAreBroadcast(t *testing.T) {
	d := documents.Parse(t, 1, threeRegions, "name: minute, limit: 100, window: 1m")
	inBubble(t, []string{"us/n1", "eu/n1"}, func(t *testing.T, c *cluster) {
		var log lines
		n := c.start("us/n1", d, func(cfg *region.Config) {
			cfg.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		})
		c.start("eu/n1", d)
		c.meet()
		q := request(strings.Repeat("x", admit.MaxValueBytes))
		for range 30 {
			if got, err := n.Check(t.Context(), q); err != nil || !got.Allowed {
				t.Fatalf("%+v, %v", got, err)
			}
		}
		time.Sleep(time.Second) // virtual
		if n.Status().Exchange.HintsPublished == 0 || log.has("hint not sent") {
			t.Errorf("%d hints published, the log says %s", n.Status().Exchange.HintsPublished,
				log.buf.String())
		}
	})
}
