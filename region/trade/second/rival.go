package second

import "github.com/quotad/quotad/region/memory/store"

// Rival is a node of this region that says that it has another store.
type Rival struct {
	Node    string // REGION/NODE
	Origin  store.Origin
	Stopped bool // it stopped using its store
	Hearsay bool // gossip alone says so: the node does not answer at its peer port
}
