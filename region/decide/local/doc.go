// Package local meters what one node admits without its region's store, where a limit says
// on_store_failure: local.
//
//	Part.Spend (spend.go)
//	  -> window   says what was spent of a bucket in the present window (window.go)
//	  -> claims   first write into the journal that this life of the node spends of it (claims.go)
//	  -> Book     charges it in the store, once that answers again (book.go)
//
// A restarted node does not spend a part a second time: it spends nothing of what an earlier life
// claimed. A limit that keeps a reserve has the reserve as its part, which the store never had.
package local
