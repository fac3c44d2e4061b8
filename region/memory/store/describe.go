package store

import (
	"maps"
	"slices"
)

var kindNames = map[kind]string{standalone: "standalone", sentinel: "sentinel", cluster: "cluster"}

// Kind returns how the servers are set up: standalone, sentinel or cluster.
func (a Address) Kind() string { return kindNames[a.kind] }

// Address returns where the store is.
func (s *session) Address() Address { return s.address }

// replidShown is how many characters of a master_replid are enough to tell servers' data apart.
const replidShown = 8

// Data returns the identities of the data that the store was opened on: the beginning of each
// server's master_replid, sorted, each once. Empty before Open, and for an embedded Redis, which
// has none.
func (s *session) Data() []string {
	found := map[string]bool{}
	for _, id := range s.identity().replids {
		if id != "" {
			found[id[:min(len(id), replidShown)]] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}
