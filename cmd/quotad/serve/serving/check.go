package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/memory/store"
)

// connectTimeout bounds each call to the Redis. It is called once, and this machine may be far away
// from it.
const connectTimeout = 2 * time.Second

// Check reads what a node would read at its start, and returns a summary of the node. Every error
// has exit code 2.
func Check(ctx context.Context, c *nodeconfig.Config, connect bool) (Sheet, error) {
	document, err := policy.Load(c.Policy)
	if err != nil {
		return Sheet{}, exit.Invalid(c.Policy, err)
	}
	if err := c.CheckRegion(document); err != nil {
		return Sheet{}, exit.Usage(err)
	}
	// The log is discarded: the files are read once, so there is no change to report.
	trust, err := LoadPeerTLS(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return Sheet{}, err
	}
	protected, err := loadProtection(c, slog.New(slog.DiscardHandler))
	if err != nil {
		return Sheet{}, err
	}
	redisTrust, err := loadRedisTLS(c)
	if err != nil {
		return Sheet{}, err
	}
	if _, err := loadTracesTLS(c); err != nil {
		return Sheet{}, err
	}
	if _, err := failpoint(c); err != nil {
		return Sheet{}, err
	}
	at := placement{http: c.Listen.HTTP, grpc: c.Listen.GRPC, admin: c.Listen.Admin,
		peer: c.Listen.Peer, gossip: c.Listen.Gossip}
	if at.journal, err = lookAtJournal(c); err != nil {
		return Sheet{}, exit.Usage(err)
	}
	if at.advertised, err = lookUpAdvertised(ctx, c, at.peer, at.gossip); err != nil {
		return Sheet{}, err
	}
	s := describe(c, document, trust, protected, at)
	s.warnings = append(s.warnings, documentWarnings(document)...)
	if connect && !c.Redis.Embedded {
		found, err := askRedis(ctx, c, redisTrust)
		if err != nil {
			return Sheet{}, exit.Usage(err)
		}
		s.rows = append(s.rows, [2]string{"redis answers", found.words()})
		if runs := found.runs(); runs != "" {
			s.rows = append(s.rows, [2]string{"redis runs", runs})
		}
		s.warnings = append(s.warnings, found.warnings()...)
	}
	return s, nil
}

// lookAtJournal says in words what is in the journal's place. It creates nothing.
func lookAtJournal(c *nodeconfig.Config) (string, error) {
	path := filepath.Join(c.DataDir, "journal.db")
	folder, err := os.Stat(c.DataDir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + ", to be made with its folder", nil
	case err != nil:
		return "", c.Fail("data_dir", err.Error(),
			"check the path, and that the user quotad runs as may read it")
	case !folder.IsDir():
		return "", c.Fail("data_dir", c.DataDir+" is not a folder", "write the path of a folder")
	}
	file, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path + ", to be made", nil
	case err != nil:
		return "", c.Fail("data_dir", err.Error(), "let the user quotad runs as read the folder")
	case !file.Mode().IsRegular():
		return "", c.Fail("data_dir", path+" is not a file",
			"move it away, or choose another folder")
	}
	return fmt.Sprintf("%s, there with %d KiB", path, file.Size()>>10), nil
}

// documentWarnings returns the warnings of the limits document, one on each line.
func documentWarnings(d *policy.Document) []string {
	var all []string
	for _, w := range d.Warnings() {
		all = append(all, w.String())
	}
	return all
}

// redisAnswer is what a Redis says about itself.
type redisAnswer struct {
	shards   int
	eviction string // maxmemory-policy; empty: not told
	versions []store.Version
}

// askRedis calls the servers of all shards.
func askRedis(ctx context.Context, c *nodeconfig.Config, trust *tls.Config) (redisAnswer, error) {
	s, err := store.Connect(store.Options{URL: c.Redis.URL, TLS: trust, Timeout: connectTimeout})
	if err != nil {
		return redisAnswer{}, c.Fail("redis.url", err.Error(), "correct it")
	}
	defer s.Close()
	const mend = "start it, correct the address, user and password, or leave --connect out where it cannot be reached from here"
	for _, shard := range s.Shards() {
		if err := s.Reach(ctx, shard); err != nil {
			return redisAnswer{}, c.Fail("redis.url", "the Redis cannot be used: "+err.Error(),
				mend)
		}
	}
	found := redisAnswer{shards: len(s.Shards())}
	if found.eviction, err = s.Eviction(ctx); err != nil {
		return found, c.Fail("redis.url", "the Redis does not tell its maxmemory-policy: "+
			err.Error(), "let the user run INFO")
	}
	if found.versions, err = s.Versions(ctx); err != nil {
		return found, c.Fail("redis.url", "the Redis does not tell its version: "+err.Error(),
			"let the user run INFO")
	}
	return found, nil
}

// runs returns which programs the servers say they run, each version once.
func (r redisAnswer) runs() string {
	var all []string
	for _, v := range r.versions {
		all = append(all, v.String())
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}

func (r redisAnswer) words() string {
	text := "yes"
	if r.shards > 1 {
		text += ", for all of " + show.Counted(r.shards, "shard")
	}
	if r.eviction != "" {
		text += ", maxmemory-policy " + r.eviction
	}
	return text
}

func (r redisAnswer) warnings() (all []string) {
	if r.eviction != "" && r.eviction != store.NoEviction {
		all = append(all, fmt.Sprintf(
			"the Redis has maxmemory-policy %s: it may forget buckets when its memory is full, and limits would not hold; set %s", r.eviction, store.NoEviction))
	}
	for _, v := range r.versions {
		if v.Flawed() {
			all = append(all, fmt.Sprintf(
				"the Redis %s runs %s, which is not known to be without grave flaws: upgrade it to Valkey, or to Redis %s or later of these series, unless its package or service mended them without a new number",
				v.Server, v, store.Mended()))
		}
	}
	return all
}
