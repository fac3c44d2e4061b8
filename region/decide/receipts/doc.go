// Package receipts gives receipts for what was charged, and gives back what they are for.
//
//	Receipts.Give        lists what was charged, sealed with a secret of the region's store
//	                     (receipts.go, seal.go)
//	  -> open            knows a receipt that any node of the region gave since its store lost data
//	  -> Settle          gives back what was not used, or charges what was used beyond, once (settle.go)
//	Receipts.Uncharge    gives back what was charged last, without a receipt (uncharge.go)
//
// Nothing here decides a request: what is charged, and to which limits, comes in as what the store
// was asked (queue.Ask) and what it said.
package receipts
