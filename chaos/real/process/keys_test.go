//go:build !race

package process

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// keysLimits have windows whose edge no run meets, so that spent units must not be admitted again.
const keysLimits = `
version: 1
regions:
  us: {weight: 1}
limits:
  - {name: flood, domain: flood, key: [account], algorithm: fixed_window, limit: 100, window: 720h}
  - {name: steady, domain: steady, key: [account], algorithm: fixed_window, limit: 1000000,
     window: 720h}
  - {name: spent, domain: spent, key: [account], algorithm: fixed_window, limit: 1000, window: 720h}
`

const (
	manyKeys     = 1_000_000
	fewKeys      = 100
	loadCallers  = 4
	longestLoad  = 8 * time.Minute
	checkRate    = 500             // a second
	checkedFor   = 30              // seconds
	drainedFor   = 5 * time.Second // how long more is asked for of a spent bucket
	sampledFlood = 1000
)

// BenchmarkKeys fills a real Redis and its node's memory with a million buckets of a long window, of which
// the node's mate has copies.
// It prints the cost, and whether answers take longer than those of a nearly empty node. Each of
// the million buckets is spent entirely, and so are some before and among them: after DEL and
// FLUSHALL no bucket may admit more than the printed bound. make keys runs it once.
func BenchmarkKeys(b *testing.B) {
	quotad := binary(b)
	halves := cores(b)
	use(b, halves.served) // child processes inherit it
	full, empty := startKeys(b, quotad, 2), startKeys(b, quotad, 1)
	k := &keys{b: b, full: full[0], mate: full[1], empty: empty[0]}
	use(b, halves.loading)
	k.full.name, k.mate.name, k.empty.name = "the node of a million", "its mate", "near empty"
	k.names()
	k.spend("early-000", 3)
	k.size("near empty")
	idle, before := k.rounds("before")
	k.loads()
	k.size("loaded")
	k.rests()
	k.size("at rest")
	beside, after := k.rounds("after")
	k.size("after the checks")
	k.live()
	for _, part := range []int{500, 900, 990} {
		fmt.Printf("p%d: %.2f of what it was; of that of the one near empty %.2f, before %.2f\n",
			part/10, ratio(after.part(part), before.part(part)),
			ratio(after.part(part), beside.part(part)), ratio(before.part(part), idle.part(part)))
	}
	k.deletes()
	k.flushes()
}

func ratio(a, b time.Duration) float64 { return float64(a) / float64(max(b, 1)) }

// keys is the benchmark, with a node that is filled and one that is not.
type keys struct {
	b           *testing.B
	full, empty *keysNode
	mate        *keysNode         // another node of the filled one's region, which nobody asks
	key         map[string]string // the Redis key of each limit, for an account of 9 letters
	spent       []string
	used        int64 // memory of the Redis before
}

type keysNode struct {
	name   string
	node   *Node
	redis  *Redis
	client quotadv1.QuotaServiceClient
}

func startKeys(b *testing.B, quotad string, nodes int) (all []*keysNode) {
	f, err := Start(b.Context(), b, Config{Quotad: quotad, Limits: keysLimits,
		Regions: []RegionConfig{{Name: "us", Nodes: nodes}}})
	suite.Must(b, err)
	for _, n := range f.Regions[0].Nodes {
		all = append(all, &keysNode{node: n, redis: f.Regions[0].Redis, client: client(b, n)})
	}
	return all
}

func keysRequest(limit, account string, cost int64) *quotadv1.CheckRequest {
	return &quotadv1.CheckRequest{Domain: limit, Cost: &cost,
		Descriptors: map[string]string{"account": account}}
}

// ask has the filled node decide one request.
func (k *keys) ask(limit, account string, cost int64) *quotadv1.Decision {
	k.b.Helper()
	got, err := k.full.client.Check(k.b.Context(), keysRequest(limit, account, cost))
	suite.Must(k.b, err)
	return got.Decision
}

const someAccount = "some-0000"

// names finds out the Redis keys of buckets while there are few.
func (k *keys) names() {
	k.key = map[string]string{}
	for _, limit := range []string{"flood", "spent"} {
		k.ask(limit, someAccount, 1)
		all, err := k.full.redis.Client.Keys(k.b.Context(), "*:b:*").Result()
		suite.Must(k.b, err)
		for _, name := range all {
			if strings.Contains(name, limit) && strings.Contains(name, someAccount) {
				k.key[limit] = name
			}
		}
		if k.key[limit] == "" {
			k.b.Fatalf("no key of limit %s in %q", limit, all)
		}
	}
}

// deletesOne deletes an account's bucket from the Redis.
func (k *keys) deletesOne(limit, account string) {
	k.b.Helper()
	key := strings.ReplaceAll(k.key[limit], someAccount, account)
	n, err := k.full.redis.Client.Del(k.b.Context(), key).Result()
	suite.Must(k.b, err)
	if n != 1 {
		k.b.Fatalf("%s %s: %d keys deleted", limit, account, n)
	}
}

// spend spends all units of some buckets.
func (k *keys) spend(prefix string, number int) {
	for i := range number {
		account := prefix[:len(prefix)-1] + strconv.Itoa(i)
		if d := k.ask("spent", account, 1000); !d.Allowed {
			k.b.Fatalf("%s: %v", account, d)
		}
		k.spent = append(k.spent, account)
	}
}

// floodAccount returns a name of nine letters, different for each number and in no order. So the
// journal pages that are written are as far apart as those of real accounts.
func floodAccount(i int) string { return fmt.Sprintf("k%08x", uint32(i)*2654435761) }

// loads spends all units of a million buckets, as fast as the node decides.
func (k *keys) loads() {
	ctx, cancel := context.WithTimeout(k.b.Context(), longestLoad)
	defer cancel()
	begun := time.Now()
	var next, decided, again atomic.Int64
	var all sync.WaitGroup
	var among sync.Once
	for range loadCallers {
		all.Go(func() {
			for ctx.Err() == nil {
				from := int(next.Add(inBatch)) - inBatch
				if from >= manyKeys {
					return
				}
				if from >= manyKeys/2 {
					among.Do(func() { k.spend("among-000", 3) })
				}
				k.loadsBatch(ctx, from, &decided, &again)
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	fmt.Printf("loaded: %d of %d keys spent in %v, %.0f a second; %d requests sent again\n",
		decided.Load(), manyKeys, took.Round(time.Second),
		float64(decided.Load())/took.Seconds(), again.Load())
	if decided.Load() != manyKeys {
		k.b.Errorf("%d keys were spent, want %d", decided.Load(), manyKeys)
	}
}

// loadsBatch spends all units of the buckets of one batch, and sends refused requests again.
func (k *keys) loadsBatch(ctx context.Context, from int, decided, again *atomic.Int64) {
	var left []*quotadv1.CheckRequest
	for i := from; i < from+inBatch; i++ {
		left = append(left, keysRequest("flood", floodAccount(i), 100))
	}
	for len(left) > 0 && ctx.Err() == nil {
		got, err := k.full.client.CheckBatch(ctx, &quotadv1.CheckBatchRequest{Requests: left})
		if err != nil {
			again.Add(int64(len(left)))
			time.Sleep(20 * time.Millisecond) // it was refused unread
			continue
		}
		var refused []*quotadv1.CheckRequest
		for i, d := range got.Decisions {
			switch {
			case d.AtUs == 0: // not decided by the store
				refused = append(refused, left[i])
			default: // denied: it was charged by an earlier request whose answer came too late
				decided.Add(1)
			}
		}
		again.Add(int64(len(refused)))
		left = refused
	}
}

// rests waits until the journal has the use.
func (k *keys) rests() {
	begun := time.Now()
	for time.Since(begun) < 2*time.Minute {
		if scrape(k.b, k.full.node)[`quotad_seen_buckets{what="unwritten"}`] == 0 {
			break
		}
		time.Sleep(250 * time.Millisecond)
	}
	fmt.Printf("the journal had all of it %v later\n",
		time.Since(begun).Round(100*time.Millisecond))
	time.Sleep(12 * time.Second) // work that is done every ten seconds is done
}

// size prints the memory and disk space of node and Redis.
func (k *keys) size(when string) {
	info, err := k.full.redis.Client.Info(k.b.Context(), "memory").Result()
	suite.Must(k.b, err)
	_, rest, _ := strings.Cut(info, "used_memory:")
	number, _, _ := strings.Cut(rest, "\r")
	used, err := strconv.ParseInt(number, 10, 64)
	suite.Must(k.b, err)
	size, err := k.full.redis.Client.DBSize(k.b.Context()).Result()
	suite.Must(k.b, err)
	if k.used == 0 {
		k.used = used
		table("", "node", "keys", "Redis MB", "B a key", "RSS MB", "at most", "of it files", "heap MB",
			"journal MB", "noted", "uses", "unwritten", "untracked")
	}
	for _, n := range []*keysNode{k.full, k.mate} {
		k.sizeOf(when, n, size, used)
	}
}

// sizeOf prints the memory and disk space of one node, beside those of the Redis.
func (k *keys) sizeOf(when string, n *keysNode, size, used int64) {
	m := scrape(k.b, n.node)
	mb := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/1e6) }
	seen := func(what string) float64 { return m[`quotad_seen_buckets{what="`+what+`"}`] }
	p := &n.node.Process
	table(when, n.name, size, mb(used), fmt.Sprintf("%.0f", float64(used-k.used)/float64(max(size, 1))),
		mb(memoryOf(p, "VmRSS")), mb(memoryOf(p, "VmHWM")), mb(memoryOf(p, "RssFile")),
		mb(int64(m["go_memstats_heap_alloc_bytes"])), mb(journalSize(k.b, n.node)),
		seen("buckets"), seen("uses"), seen("unwritten"), m["quotad_seen_untracked_total"])
}

// live prints the heap that is left of each node by a garbage collection.
func (k *keys) live() {
	for _, n := range []*keysNode{k.full, k.mate, k.empty} {
		answer, err := http.Get("http://" + n.node.Admin + "/debug/pprof/heap?gc=1")
		suite.Must(k.b, err)
		_, err = io.Copy(io.Discard, answer.Body)
		suite.Must(k.b, err, answer.Body.Close())
		fmt.Printf("live heap of %s: %.1f MB\n", n.name, scrape(k.b, n.node)["go_memstats_heap_alloc_bytes"]/1e6)
	}
}

// steady returns a request for one of a few keys.
func steady(i uint64) *quotadv1.CheckRequest {
	return keysRequest("steady", floodAccount(int(i%fewKeys)), 1)
}

// rounds asks both nodes in turn, a second each, for a few keys at an even pace, so that other work
// of the machine slows both equally. It prints and returns the outcome.
func (k *keys) rounds(when string) (empty, full *paced) {
	nodes := []*keysNode{k.empty, k.full}
	all := []*paced{newPaced(), newPaced()}
	var ran, waited [2]time.Duration
	runtime.GC() // otherwise it would run while somebody waits
	for turn := range 2 * checkedFor {
		i := turn % 2
		ctx, cancel := context.WithTimeout(k.b.Context(), time.Second)
		r, w := processorTime(&nodes[i].node.Process)
		p := checks(ctx, k.b, nodes[i].client, load.Rate(checkRate), steady)
		cancel()
		all[i].add(p)
		ranThen, waitedThen := processorTime(&nodes[i].node.Process)
		ran[i], waited[i] = ran[i]+ranThen-r, waited[i]+waitedThen-w
	}
	for i, p := range all {
		fmt.Printf("%s, %s: %v; the node ran for %v and waited %v for a processor\n", when,
			nodes[i].name, p, ran[i].Round(time.Millisecond), waited[i].Round(time.Millisecond))
		if p.decided < p.offered*99/100 {
			k.b.Errorf("%s: %d of %d were decided by the store", when, p.decided, p.offered)
		}
	}
	return all[0], all[1]
}

// had asks for more of a spent bucket for a while, and returns how much more was admitted.
func (k *keys) had(limit string, accounts []string) (most, all int64,
	reasons map[quotadv1.Reason]int) {
	units := map[string]int64{}
	reasons = map[quotadv1.Reason]int{}
	for end := time.Now().Add(drainedFor); time.Now().Before(end); {
		for _, account := range accounts {
			d := k.ask(limit, account, 1)
			reasons[d.Reason]++
			if d.Allowed {
				units[account]++
				all++
				most = max(most, units[account])
			}
		}
	}
	return most, all, reasons
}

// sampleFlood returns accounts of the flood.
func sampleFlood() (all []string) {
	for range sampledFlood {
		all = append(all, floodAccount(rand.IntN(manyKeys)))
	}
	return all
}

// deletes deletes spent buckets from the Redis.
func (k *keys) deletes() {
	const when = "the node asked first had used it then"
	for _, c := range []struct {
		limit    string
		accounts []string
	}{
		{"spent", []string{k.spent[0], k.spent[3]}}, // one from before the flood, one from among it
		{"flood", sampleFlood()[:100]},
	} {
		for _, account := range c.accounts {
			k.deletesOne(c.limit, account)
		}
		k.wantAtMost("DEL", c.limit, c.accounts, "key-deleted", when)
	}
}

// flushes empties the Redis.
func (k *keys) flushes() {
	suite.Must(k.b, k.full.redis.Client.FlushAll(k.b.Context()).Err())
	k.wantAtMost("FLUSHALL", "spent", k.spent, "store-lost", "the nodes that decided still run")
	k.wantAtMost("FLUSHALL", "flood", sampleFlood(), "store-lost",
		"the nodes that decided still run")
}

// wantAtMost checks that no more of any bucket is admitted than the printed bound. If some requests
// were decided without the store, the bound for that is added.
func (k *keys) wantAtMost(what, limit string, accounts []string, cause, when string) {
	most, all, reasons := k.had(limit, accounts)
	terms := printed(k.b, keysLimits, limit)
	bound := terms.of(k.b, "us", cause, when)
	local := terms.of(k.b, "us", "local", "one node cut off, each window")
	fmt.Printf("%s: %d spent keys of limit %s asked for %v: at most %d more of one key, %d in all; "+
		"printed %d a key, and %d decided without the store; %v\n",
		what, len(accounts), limit, drainedFor, most, all, bound, local, reasons)
	if reasons[quotadv1.Reason_REASON_STORE_FAILURE_LOCAL] > 0 {
		bound += local
	}
	if most > bound {
		k.b.Errorf("%s: %d more than the limit admitted of one key, printed %d", what, most, bound)
	}
	if reasons[quotadv1.Reason_REASON_OVER_LIMIT] == 0 {
		k.b.Errorf("%s: nothing was decided by the store: %v", what, reasons)
	}
}
