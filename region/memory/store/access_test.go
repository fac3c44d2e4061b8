package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
)

// TestTLS: a store reaches a Redis that asks for certificates with the right ones, and not without,
// nor one whose certificate is of another authority.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	authority := fixtures.NewAuthority(t)
	loopback := []net.IP{net.IPv4(127, 0, 0, 1)}
	authority.Write(t, dir, "redis", &x509.Certificate{IPAddresses: loopback})
	own := authority.Issue(t, &x509.Certificate{IPAddresses: loopback})
	port, err := servers.FreePort()
	suite.Must(t, err)
	fixtures.Process(t, "--tls-port", strconv.Itoa(port), "--tls-cert-file",
		filepath.Join(dir, "redis.pem"),
		"--tls-key-file", filepath.Join(dir, "redis.key"), "--tls-ca-cert-file",
		filepath.Join(dir, "redis-ca.pem"))
	url := "rediss://127.0.0.1:" + strconv.Itoa(port)
	right := &tls.Config{RootCAs: authority.Pool(), Certificates: []tls.Certificate{own},
		MinVersion: tls.VersionTLS13}
	s := connect(t, Options{URL: url, TLS: right})
	mustOpen(t, s, first)
	serves(t, s, "k")
	for name, config := range map[string]*tls.Config{
		"no certificate":    {RootCAs: right.RootCAs, MinVersion: tls.VersionTLS13},
		"another authority": {Certificates: right.Certificates, MinVersion: tls.VersionTLS13},
		"nothing":           nil,
	} {
		if _, err := connect(t, Options{URL: url, TLS: config}).Open(t.Context(),
			first); err == nil || !strings.Contains(err.Error(), "redis.url") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Connect(Options{URL: strings.Replace(url, "rediss", "redis", 1),
		TLS: right}); err == nil || !strings.Contains(err.Error(), "rediss") {
		t.Errorf("certificates without TLS: %v", err)
	}
}

// TestMinimalACL: a user with the rights of MinimalACL can do all that a store does; without any
// one of them something fails with an error that names the rights.
func TestMinimalACL(t *testing.T) {
	t.Parallel()
	for _, on := range []string{"standalone", "cluster"} {
		t.Run(on, func(t *testing.T) {
			var server *servers.Server
			var admins []*redis.Client
			if on == "cluster" {
				server = fixtures.Started(t)(servers.StartCluster(t.Context(), 1))
				admins = masters(t, server)
			} else {
				server = fixtures.Process(t)
				admins = []*redis.Client{fixtures.Operator(t, server)}
			}
			url := strings.Replace(server.URL, "://", "://node:horse@", 1)
			rules := strings.Fields(MinimalACL)
			try := func(rules []string) error {
				args := []any{"ACL", "SETUSER", "node", "reset", ">horse"}
				for _, rule := range rules {
					args = append(args, rule)
				}
				admin := admins[0]
				suite.Must(t, admin.FlushAll(t.Context()).Err(), admin.ScriptFlush(t.Context()).Err(),
					admin.Do(t.Context(), args...).Err())
				s := connect(t, Options{URL: url})
				defer s.Close()
				for {
					err := exercise(t, s)
					if r, is := errors.AsType[*Refused](err); !is || r.Status != algorithms.StatusFinished {
						return err
					}
					// On a starved machine a cell ended between two calls.
				}
			}
			if err := try(rules); err != nil {
				t.Fatalf("with all rights: %v", err)
			}
			for i, rule := range rules {
				if rule == "-@all" || rule == "+cluster|slots" && on == "standalone" || slices.Contains(spare, rule) {
					continue
				}
				less := append(append([]string{}, rules[:i]...), rules[i+1:]...)
				err := try(less)
				if err == nil {
					t.Errorf("not needed: %s", rule)
				} else if strings.HasPrefix(rule, "+") && rule != "+cluster|slots" &&
					!strings.Contains(err.Error(), MinimalACL) {
					t.Errorf("without %s: %q does not name the rights", rule, err)
				}
			}
		})
	}
}

// exercise makes every kind of call on buckets of every kind, so that the scripts use all their
// commands.
func exercise(t *testing.T, s *Store) error {
	ctx := t.Context()
	if _, err := s.Open(ctx, first); err != nil {
		return err
	}
	shard := s.Shard("x")
	for _, kind := range algorithms.Kinds {
		of := perMinute(kind, 10)
		key, once := BucketKey(shard, string(kind)), OnceKey(shard, string(kind))
		c := algorithms.Decide{Fence: under(epoch), Commit: true, Costs: []quantity.Units{1},
			Once: once, Buckets: []algorithms.LimitTarget{{Target: algorithms.Target{Key: key,
				Terms: of}}}}
		r := s.Decide(ctx, []algorithms.Decide{c, c})
		if r[0].Err != nil {
			return r[0].Err
		}
		cell := r[0].Value.Buckets[0].Cell
		if r := s.Lend(ctx, []algorithms.Lend{{Fence: under(epoch),
			Target: algorithms.Target{Key: key, Terms: of},
			Debit: algorithms.Debit{Peer: "us", Cell: cell, Lent: 1,
				Cap: 10}}}); r[0].Err != nil {
			return r[0].Err
		}
		if r := s.Credit(ctx,
			[]algorithms.Credit{{Fence: under(epoch), Target: algorithms.Target{Key: key,
				Terms: of},
				Announcement: algorithms.Announcement{Peer: "us", PeerGeneration: 1, Cell: cell, Lent: 1,
					Most: 10}}}); r[0].Err != nil {
			return r[0].Err
		}
		if _, err := s.Settle(ctx, algorithms.Settle{Fence: under(epoch),
			Receipt: SettleKey(shard, string(kind)), Once: once,
			At: r[0].Value.Now, Cost: 1,
			Charges: []algorithms.Charge{{Target: algorithms.Target{Key: key, Terms: of},
				Cell: cell}}}); err != nil {
			return err
		}
		if _, err := s.Reset(ctx, algorithms.Reset{Fence: under(epoch),
			Target: algorithms.Target{Key: key, Terms: of}}); err != nil {
			return err
		}
	}
	if err := s.Reach(ctx, shard); err != nil {
		return err
	}
	if _, err := s.Eviction(ctx); err != nil {
		return err
	}
	if _, err := s.Note(ctx, "n1", "a text"); err != nil {
		return err
	}
	if err := s.Reach(ctx, shard); err != nil {
		return err
	}
	if _, err := s.Adopt(ctx, "2-b"); err != nil {
		return err
	}
	return recoveryOf(ctx, s, shard)
}

// recoveryOf makes the calls of a recovery on buckets of every kind.
func recoveryOf(ctx context.Context, s *Store, shard Shard) error {
	g := under("2-b")
	for _, kind := range algorithms.Kinds {
		of := perMinute(kind, 10)
		key := BucketKey(shard, string(kind))
		if r := s.Recall(ctx,
			[]algorithms.Recall{{Fence: g, Target: algorithms.Target{Key: key, Terms: of},
				Peer: "us", PeerGeneration: 2}}); r[0].Err != nil {
			return r[0].Err
		}
		if r := s.Book(ctx, []algorithms.Book{{Fence: g, Target: algorithms.Target{Key: key,
			Terms: of}, Node: "n1", Window: quantity.Cell(time.Now().UnixMicro() / of.Window),
			Units: 1}}); r[0].Err != nil {
			return r[0].Err
		}
		if r := s.Restore(ctx,
			[]algorithms.Restore{{Fence: g, Target: algorithms.Target{Key: key, Terms: of},
				Known: algorithms.Known{UnknownPeers: []string{"us"}}}}); r[0].Err != nil {
			return r[0].Err
		}
	}
	return nil
}
