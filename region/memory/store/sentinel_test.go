package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/redisserver"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// watched starts a master, a replica that has its data, and a Sentinel that watches them; it
// returns the URL.
func watched(t *testing.T) (url string, master, replica *servers.Server) {
	t.Helper()
	master = fixtures.Process(t)
	host, port, _ := net.SplitHostPort(address(master))
	replica = fixtures.Process(t, "--replicaof", host+" "+port)
	suite.Eventually(t, "the replica has the master's data", func() bool {
		return strings.Contains(fixtures.Operator(t, replica).Info(t.Context(), "replication").Val(),
			"master_link_status:up")
	})
	own, err := servers.FreePort()
	suite.Must(t, err)
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	suite.Must(t, os.WriteFile(file, fmt.Appendf(nil, `port %d
bind 127.0.0.1
dir %s
sentinel monitor mymaster %s %s 1
sentinel down-after-milliseconds mymaster 500
sentinel failover-timeout mymaster 5000
`, own, dir, host, port), 0o600))
	path, err := redisserver.Path()
	suite.Must(t, err)
	cmd := exec.Command(path, file, "--sentinel")
	suite.Must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(own))
	known := redis.NewClient(&redis.Options{Addr: at, MaxRetries: -1, DisableIdentity: true})
	t.Cleanup(func() { _ = known.Close() })
	suite.Eventually(t, "the Sentinel knows the replica, which it is to promote", func() bool {
		reply, err := known.Do(t.Context(), "SENTINEL", "REPLICAS", "mymaster").Slice()
		return err == nil && len(reply) == 1
	})
	return "redis+sentinel://" + at + "/mymaster", master, replica
}

// TestFailover: when the master dies, the store finds its replica without help. Nothing that the
// replica answers counts before the store is opened anew, with closed cells. What the replica was
// not told is therefore not admitted twice.
func TestFailover(t *testing.T) {
	t.Parallel()
	url, master, replica := watched(t)
	s, mate := connect(t, Options{URL: url, Timeout: time.Second}),
		connect(t, Options{URL: url, Timeout: time.Second})
	mustOpen(t, s, first)
	mustOpen(t, mate, as("n2", 0, nil))
	serves(t, s, "k")
	serves(t, mate, "k")
	known := s.Generation()
	suite.Must(t, master.Close())
	var failures int
	suite.Eventually(t, "the replica answers", func() bool {
		r := s.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0]
		if admitted(r.Value) != 0 {
			t.Fatalf("admitted by nobody: %+v", r)
		}
		if !Answered(r.Err) {
			failures++
			return false
		}
		if !errors.Is(r.Err, ErrUnknownStore) {
			t.Fatalf("%v, want %v", r.Err, ErrUnknownStore)
		}
		return true
	})
	if failures == 0 {
		t.Error("a dead master answered")
	}
	o := Opening{Region: "eu", Epoch: epoch, LastGeneration: known}
	opened := mustOpen(t, s, o)
	if !opened.Lost || opened.Generation <= known {
		t.Errorf("opened %+v after generation %d", opened, known)
	}
	closedCells(t, s, epoch)
	suite.Eventually(t, "the replica answers the mate", func() bool {
		return Answered(mate.Decide(t.Context(), []algorithms.Decide{charge("k", 10, 1)})[0].Err)
	})
	if took := mustOpen(t, mate, o); !took.took(opened.Generation) {
		t.Errorf("the mate opened %+v", took)
	}
	closedCells(t, mate, epoch)
	if client, err := s.servers.(*redisServers).master(context.Background(), Whole); err != nil ||
		client.Options().Addr != address(replica) {
		t.Errorf("the master is %v, %v; want %s", client, err, address(replica))
	}
}

// TestSentinelsThatDoNotKnow: the error says what to mend if the Sentinels are away, or know no
// such master.
func TestSentinelsThatDoNotKnow(t *testing.T) {
	t.Parallel()
	url, _, _ := watched(t)
	for broken, words := range map[string]string{
		strings.Replace(url, "mymaster", "other", 1): "knows no master of this name",
		"redis+sentinel://127.0.0.1:1/mymaster":      "127.0.0.1:1",
	} {
		_, err := connect(t, Options{URL: broken}).Open(t.Context(), first)
		if err == nil || !strings.Contains(err.Error(), words) || !strings.Contains(err.Error(),
			"redis.url") {
			t.Errorf("%s: %v", broken, err)
		}
	}
	mixed := strings.Replace(url, "://", "://127.0.0.1:1,", 1) // one of them is enough
	mustOpen(t, connect(t, Options{URL: mixed}), first)
}
