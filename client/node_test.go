package client_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/chaos/lab/fixtures"
	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/servers"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/client"
	"github.com/quotad/quotad/region"
	"github.com/quotad/quotad/region/front/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// front is a node of a region, the document's only one, that serves gRPC.
type front struct {
	*region.Node
	at string
}

// startNode runs a node on a Redis until the end of the test, with one limit.
func startNode(t *testing.T, server *servers.Server, limit string) *front {
	t.Helper()
	n := fronts.Start(t, server, limit)
	s := api.New(n, fronts.Quiet(), api.Options{})
	at := fronts.Listen(t, s.Callers.ServeGRPC, s.Close)
	return &front{Node: n.Node, at: strings.TrimPrefix(at, "http://")}
}

// dial returns a connection to the node, which ends with the test at the latest.
func (f *front) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(f.at, grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// eachRedis runs a test on an embedded Redis and on a redis-server, both at a time.
func eachRedis(t *testing.T, f func(t *testing.T, s *servers.Server)) {
	for name, start := range fixtures.Kinds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t, start(t))
		})
	}
}

// limit is a limit of accounts in domain api.
func limit(kind string, units int64, window time.Duration, fields string) string {
	return fmt.Sprintf("  - {name: account, domain: api, key: [account], algorithm: %s, limit: %d, window: %dms%s}\n", kind, units,
		window.Milliseconds(), fields)
}

// patient are the options of clients that wait for a busy machine.
var patient = client.Options{Prefetch: true, Timeout: 10 * time.Second}

const prefetched = ", consistency: prefetch"

var account = map[string]string{"account": "42"}

// flood has callers spend a bucket until each was denied so many times, and returns what was
// admitted.
func flood(t *testing.T, b *client.Bucket, callers, denials int) (admitted int64) {
	t.Helper()
	var all sync.WaitGroup
	var mu sync.Mutex
	for range callers {
		all.Go(func() {
			own, denied := int64(0), 0
			for denied < denials {
				d, err := b.Allow(t.Context(), 1)
				if err != nil {
					t.Error(err)
					break
				}
				if d.Allowed {
					own++
				} else {
					denied++
				}
			}
			mu.Lock()
			defer mu.Unlock()
			admitted += own
		})
	}
	all.Wait()
	return admitted
}

// spendFromMemory spends a bucket until five units came from those that its client holds, and
// returns all that were admitted.
func spendFromMemory(t *testing.T, b *client.Bucket) (admitted int64) {
	t.Helper()
	for held := 0; held < 5; time.Sleep(time.Millisecond) { // the client takes units meanwhile
		d := allow(t, b, 1)
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		if d.FromMemory {
			held++
		}
		admitted++
	}
	return admitted
}

// drain spends what is left of the account's bucket, also what the node itself holds of it, and
// returns how much that was: once it has so many units, or all that go back in a while.
func drain(t *testing.T, f *front, units int64) (admitted int64) {
	t.Helper()
	b := client.New(f.dial(t), client.Options{Timeout: patient.Timeout}).Bucket("api", account)
	admitted = flood(t, b, 1, 1)
	for range 6 { // on a busy machine what the node asked for meanwhile goes back late
		time.Sleep(1500 * time.Millisecond)
		if admitted += flood(t, b, 1, 1); admitted >= units {
			break
		}
	}
	return admitted
}
