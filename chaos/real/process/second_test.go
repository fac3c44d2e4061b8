//go:build !race

package process

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// storeOf is the part of a node's status that says which store it decides with.
type storeOf struct {
	Ready bool `json:"ready"`
	Store struct {
		ID      string `json:"id"`
		Stopped string `json:"stopped"`
		Rivals  []struct {
			Node    string `json:"node"`
			Stopped bool   `json:"stopped"`
		} `json:"rivals"`
	} `json:"store"`
}

func storeAt(t *testing.T, n *Node) (s storeOf) {
	t.Helper()
	answer, err := n.calls.Request(t.Context(), http.MethodGet, "/v1/status", nil)
	if err == nil {
		err = json.Unmarshal(answer, &s)
	}
	suite.Must(t, err)
	return s
}

// heardFirst reports whether a node, since its last start, has met a member before it served.
func heardFirst(said, member string) bool {
	start := strings.LastIndex(said, "\n  journal  ") // of what a node prints when it starts
	before, _, _ := strings.Cut(said[max(start, 0):], `"msg":"serving"`)
	return strings.Contains(before, `"member":"`+member+`"`)
}

// TestSecondStore: a node of us is started under the name of one that runs, and is refused. Then it
// is started on a Redis of its own, as if the region were new. While it can hear the others it is
// refused. If it cannot, because its gossip key is another, it serves: that is the bound. Started
// anew where it hears them, it stops before it serves. On a starved machine nobody may have
// answered its first calls: then it stops once it hears them. From then on nothing is admitted
// above the limit.
func TestSecondStore(t *testing.T) {
	t.Parallel()
	f := raiseBounded(t, false)
	second, err := StartRedis(t.Context(), t, RedisConfig{})
	suite.Must(t, err)
	f.n2.Kill()

	// It has the name of a node that runs: it ends, and says why.
	f.n2.SetEnv("QUOTAD_NODE=n1", "QUOTAD_DATA_DIR="+filepath.Join(t.TempDir(), "other"))
	suite.Must(t, f.n2.Launch())
	suite.Eventually(t, "a second n1 to be refused", func() bool { return !f.n2.Running() })
	if said := f.n2.Output(); !strings.Contains(said, "another process runs as node us/n1") {
		t.Errorf("it ended without saying why:\n%s", said)
	}

	env := []string{"QUOTAD_REDIS_URL=" + second.URL,
		"QUOTAD_DATA_DIR=" + filepath.Join(t.TempDir(), "data")}
	f.n2.SetEnv(append(env, "QUOTAD_NODE=n2", "QUOTAD_BOOTSTRAP=true")...)

	// It hears the others: it ends, and says why. Nothing is admitted above the limit.
	suite.Must(t, f.n2.Launch())
	suite.Eventually(t, "the second store to be refused", func() bool { return !f.n2.Running() })
	if said := f.n2.Output(); !strings.Contains(said, "us/n1 decides with another store of this region") ||
		!strings.Contains(said, "redis.url") {
		t.Errorf("it ended without saying why:\n%s", said)
	}
	if n, err := second.Client.DBSize(t.Context()).Result(); err != nil || n != 0 {
		t.Errorf("it left %d keys in the second store, %v", n, err)
	}

	// It hears nobody: both stores serve.
	f.n2.SetEnv(append(env, "QUOTAD_BOOTSTRAP=alone",
		"QUOTAD_GOSSIP_KEYS=MDEyMzQ1Njc4OWFiY2RlZg==")...)
	suite.Must(t, f.n2.Start(t.Context()))
	const cause, when = "second-store", "each window, nothing borrowed"
	b := f.bucket("split")
	b.spendFor(6*time.Second, f.n1, f.n2, f.eu)
	b.wantProvoked(cause+": "+when, printed(t, boundLimits, "split", "--nodes", "2").of(t, "us",
		cause, when), 0, b.certain())

	f.n2.Kill()
	f.n2.SetEnv(env...)
	suite.Must(t, f.n2.Launch())
	suite.Eventually(t, "n2 to answer", func() bool {
		_, err := f.n2.Status(t.Context())
		return err == nil
	})
	if s := storeAt(t, f.n2); s.Ready && heardFirst(f.n2.Output(), "us/n1") {
		t.Errorf("n2 has heard n1, and serves with the second store: %+v\n%s", s, f.n2.Output())
	}
	suite.Eventually(t, "n2 to stop", func() bool {
		s := storeAt(t, f.n2)
		return !s.Ready && strings.Contains(s.Store.Stopped, "us/n1 decides with store")
	})
	b = f.bucket("split")
	b.spendFor(6*time.Second, f.n1, f.n2, f.eu)
	if excess, alone := b.answered(), b.alone(printed(t, boundLimits, "split", "--nodes", "2")); excess > alone {
		t.Errorf("%d admitted above the limit after n2 stopped, %d of them where a Redis was out of reach", excess, alone)
	}
	if s := storeAt(t, f.n1); !s.Ready || len(s.Store.Rivals) != 1 || !s.Store.Rivals[0].Stopped {
		t.Errorf("n1 shows %+v", s)
	}
}
