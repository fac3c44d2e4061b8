package region

import (
	"slices"
	"testing"
	"time"

	"github.com/quotad/quotad/allocator/exchange"
)

// TestHintsOfOneBucketDoNotDisplaceEachOther: three nodes hint at one bucket, one shortly after the other. Each passes on what
// it hears of the others; that takes the place of nothing that it has to say itself.
func TestHintsOfOneBucketDoNotDisplaceEachOther(t *testing.T) {
	d := document(t, 1, threeRegions, "name: second, limit: 100, window: 1s")
	nodes := []string{"us/n1", "eu/n1", "ap/n1"}
	started(t, d, nodes, func(t *testing.T, c *cluster) {
		for round := range int64(20) {
			for _, name := range nodes {
				n := c.running[name]
				n.broadcast(exchange.Hint{Region: n.config.Region, Node: n.config.Node, Bucket: "b", Rate: round + 1})
				time.Sleep(30 * time.Millisecond)
			}
			time.Sleep(530 * time.Millisecond) // in all no multiple of the gossip's interval; push and pull takes seconds
			for _, name := range nodes {
				s := c.running[name].hints
				s.mu.Lock()
				var heard []string
				for key, kept := range s.known {
					if key.bucket == "b" && kept.hint.GetRateMilli() == round+1 {
						heard = append(heard, key.region)
					}
				}
				s.mu.Unlock()
				slices.Sort(heard)
				if !slices.Equal(heard, []string{"ap", "eu", "us"}) {
					t.Fatalf("round %d: %s has heard %v", round, name, heard)
				}
			}
		}
	})
}
