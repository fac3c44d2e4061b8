package region_test

import (
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/quantity"
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
	started(t, documents.Parse(t, 1, alone, "name: m, limit: 100, window: 1h"), []string{"us/n1"},
		func(t *testing.T, c *cluster) {
			n := c.running["us/n1"]
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
