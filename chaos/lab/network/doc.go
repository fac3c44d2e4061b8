// Package network is a network inside one process: hosts with listeners, dialers and packets. Each
// ordered pair of hosts has a link of its own, with a one-way delay, which can be cut in that
// direction alone. The demo and the tests run over it. A cut always has an end: nothing stays cut
// because a test died before it could heal.
//
// A packet is delivered once, in order, one delay after it was sent. The network drops and counts
// it if the link is cut as it is sent or as it is due, if nobody listens, or if a queue on its way
// is full.
//
// A stream delivers every byte in order, one delay after it was written. While its direction is cut
// nothing of it arrives, its end included. After the cut everything on the way is sent again, as
// TCP would, and arrives one delay after the heal. A long cut therefore makes messages arrive very
// late, which is wanted: receivers must cope. A dial takes a round trip and needs both directions;
// during a cut it hangs until its context ends.
//
// Outside cuts there is no loss, no duplication, no reordering and no limit on bandwidth. A stream
// has no half-close: closing ends both directions, and the far end learns of it when the close
// arrives there.
//
// One mutex guards the whole network, each link has one timer, and a connection has no goroutine.
// Nothing polls, and no real socket is opened. So everything here also runs on the virtual clock of
// a testing/synctest bubble, as long as the network is used inside one bubble only.
package network
