// Package second finds out that a region has two stores (split brain), and makes the nodes of the
// younger one stop.
//
// All nodes of a region must decide with one store, for each store holds the region's whole share.
// A wrong redis.url, or --bootstrap on another Redis, makes a second one. Then each window admits
// the region's share twice.
//
// # What is compared
//
// Each node says by gossip and to whoever asks at its peer port which store it decides with: its
// store.Origin. Nodes that share a store say the same ID. Of two stores the older is the one whose
// data reach back further (Origin.Since, then ID), so all nodes agree on it.
//
// # When a node stops
//
// A node stops when another node of its region answers that it decides with an older store
// (judge.go). Before that node says so, it asks its store. So a store that was lost never counts:
// after FLUSHALL, or a failover in which the old primary died, no node can say any more that the old
// store has just answered. Its successor is therefore not taken for a second store, whichever node
// hears of it first, and a node with an old view opens the successor too. For the same reason a node
// asks its own store before it compares it.
//
// A node that stopped decides as without a store (on_store_failure), lends and borrows nothing, and
// is not ready. It stays stopped for as long as a node answers with another store, even if that
// one begins anew after a loss and is then the younger. It goes on when the node that it stopped
// for answers with the same store or has stopped itself, or when nobody has confirmed the older
// store for 10 s. The nodes of the older store remember the IDs of stores that stopped, and say
// them: so a node that stopped and was started anew stops again.
//
// A node that opened the second store as after a loss has asked other nodes what they know of the
// region's rows. A node that answers takes no rows of an earlier generation any more. So when the
// nodes of the older store have found the younger one, they begin a later generation, without loss.
//
// # What gossip alone may do
//
// The answers at the peer port decide, and with peer_tls only a node of the region can give them.
// Gossip says whom to ask, and when. Where a node that gossip shows with an older store does not
// answer at its peer port, gossip alone stops this node for at most a minute, and not again within
// an hour. So a forger who reaches gossip cannot stop a region for longer. Afterwards the node
// serves, and says so in log, status and metrics. Gossip shows a node that ended for a while, with
// the store that it had. So what gossip says of a store that this node itself had and lost is dropped.
//
// # Before a second store is made
//
// A node that is about to begin a generation of its store asks the others first (begin.go). It does
// not begin while another node decides with another store. With --bootstrap it asks all nodes of all
// regions that gossip shows, and refuses if any knows the region to have a store.
//
// # What is left
//
// Two nodes that hear each other neither by gossip nor at their peer ports both serve. What that
// admits is the bound "second-store" of quotad limits bound.
package second
