//go:build !race

package sim

import "testing"

// onceBroken are shrunk plans that broke an invariant. Each found a mistake in quotad.
var onceBroken = map[string]*Plan{
	// A node had to open its store anew, and its document was older than the one in force there. It
	// could neither open the store nor adopt the newer document.
	"a store opened anew under a newer document": {
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 3, Nodes: 2},
			{Name: "r1", Weight: 4, Nodes: 1}, {Name: "r2", Weight: 4, Nodes: 1}},
		OneWay: [][]int64{{0, 20_000, 60_000}, {20_000, 0, 60_000}, {60_000, 60_000, 0}},
		Keys:   []string{"k0"},
		Document: `
regions: {r0: {weight: 3}, r1: {weight: 4}, r2: {weight: 4}}
limits:
  - {name: l0, domain: api, key: [account], algorithm: leaky_bucket, limit: 300, window: 90s, on_store_failure: deny}
`,
		Acts: []Act{
			{ID: 1, At: 13_000_000, For: 6_000_000, Do: Steady, Region: 1, Amount: 3000, Cost: 2},
			{ID: 2, At: 15_500_000, For: 20_000, Do: StoreAnew},
			{ID: 3, At: 17_800_000, For: 3_000_000, Do: Policy, Peer: -1},
		},
		Heal: 24_000_000, End: 36_000_000,
	},
	// A busy store took the documents under which a node opened it, and the node did not hear so.
	// When it started anew its file had a later document, and nobody had the text of the one
	// before.
	"documents that the store has and nobody else": {
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 2, Nodes: 1},
			{Name: "r1", Weight: 1, Nodes: 1}},
		OneWay: [][]int64{{0, 20_000}, {20_000, 0}}, Keys: []string{"k0"},
		Document: `
regions: {r0: {weight: 2}, r1: {weight: 1}}
limits:
  - {name: l0, domain: api, key: [account], algorithm: fixed_window, limit: 60, window: 60s, on_store_failure: deny}
`,
		Acts: []Act{
			{ID: 1, At: 3_247_000, For: 9_256_000, Do: StoreBusy, Region: 1, Amount: 124_104, Peer: -1},
			{ID: 2, At: 7_942_000, For: 2_521_000, Do: Policy, Peer: -1},
			{ID: 3, At: 9_956_000, For: 992_000, Do: Reboot, Region: 1, Peer: -1},
			{ID: 4, At: 10_962_000, For: 936_000, Do: Policy, Peer: -1},
		},
		Heal: 18_000_000, End: 30_000_000,
	},
	// Clocks are nearly a cell apart. A rate that was lent late in the lender's cell was borrowed
	// from the beginning of the borrower's cell on, and so again in every cell.
	"a rate had twice": {
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 5, Nodes: 1, Ahead: 922_000},
			{Name: "r1", Weight: 4, Nodes: 1}},
		OneWay: [][]int64{{0, 15_000}, {15_000, 0}}, Keys: []string{"k0"},
		Document: `
regions: {r0: {weight: 5}, r1: {weight: 4}}
limits:
  - {name: l0, domain: api, key: [account], algorithm: token_bucket, limit: 300, window: 10s, on_store_failure: deny}
`,
		Acts: []Act{{ID: 1, At: 2_000_000, For: 30_000_000, Do: Steady, Region: 1, Amount: 10_000,
			Cost: 24}},
		Heal: 33_000_000, End: 45_000_000,
	},
	// Clocks are apart by a little more than a message takes. Units whose weight had faded by the
	// lender's clock were lent, and still weighed by the borrower's clock.
	"units that weigh here and had faded there": {
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 1, Nodes: 1, Ahead: 90_000},
			{Name: "r1", Weight: 1, Nodes: 1}},
		OneWay: [][]int64{{0, 15_000}, {15_000, 0}}, Keys: []string{"k0"},
		Document: `
regions: {r0: {weight: 1}, r1: {weight: 1}}
limits:
  - {name: l0, domain: api, key: [account], algorithm: sliding_window_counter, limit: 10000, window: 10s, on_store_failure: deny}
`,
		Acts: []Act{
			{ID: 1, At: 2_000_000, For: 9_000_000, Do: Steady, Region: 0, Amount: 1_000_000,
				Cost: 50},
			{ID: 2, At: 2_000_000, For: 30_000_000, Do: Steady, Region: 1, Amount: 4_000_000,
				Cost: 50},
		},
		Heal: 33_000_000, End: 45_000_000,
	},
	// A store is unreachable around the end of a window. Its node admitted its parts of both
	// windows at once, while the printed bound was that of one part.
	"two windows' parts of a bucket at once": {
		Seed: 1, Regions: []RegionPlan{{Name: "r0", Weight: 1, Nodes: 1},
			{Name: "r1", Weight: 1, Nodes: 1}},
		OneWay: [][]int64{{0, 15_000}, {15_000, 0}}, Keys: []string{"k0"},
		Document: `
regions: {r0: {weight: 1}, r1: {weight: 1}}
limits:
  - {name: l0, domain: api, key: [account], algorithm: token_bucket, limit: 60, window: 10s, burst: 12, lending_limit: 0.5, on_store_failure: local}
`,
		Acts: []Act{
			{ID: 1, At: 4_253_000, For: 8_580_000, Do: Edge, Region: 1, Amount: 40, Cost: 1},
			{ID: 2, At: 9_800_000, For: 1_500_000, Do: StoreAnew, Region: 1},
		},
		Heal: 22_000_000, End: 34_000_000,
	},
	// A generation is begun for a deleted bucket, and the store is too slow for what follows.
	"a bucket is deleted from a busy store": Draw(208957, Config{For: 30_000_000, Wider: true, Large: true, Classes: true,
		Only: []int{9, 32, 20}}),
	// A node whose clock the store refuses does not learn what a promoted replica shows.
	"a replica is lost that refused the only node's clock": Draw(701024, Config{For: 30_000_000, Wider: true, Large: true, Classes: true,
		Only: []int{5, 11, 18, 6, 0, 2, 4, 12, 3}}),
	// Two losses within two seconds, of which each began the store's time 3 s ahead.
	"a store is lost twice while its node starts anew": Draw(103639, Config{For: 30_000_000, Wider: true,
		Only: []int{36, 37, 17}}),
}

func TestPlansThatOnceBroke(t *testing.T) {
	keep(t, onceBroken)
}
