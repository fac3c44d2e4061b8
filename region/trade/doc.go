// Package trade is the group of what regions say to each other about rights:
//
//	demand seen by decide -> rights (steps the machine of allocator/exchange)
//	its effects           -> memory/store (debit, credit) and memory/journal (before the reply leaves)
//	its messages          -> peer (gRPC to nodes of other regions and of this one)
//	a second store of the region -> second (the younger one's nodes stop)
//
// It imports memory and base.
package trade
