// Package link is a network inside one process: hosts with listeners, dialers
// and packets, joined by directed links that have a one-way delay and can be
// cut. The demo, the tests and the rehearsals of faults run over it, and it is
// the only place in the project where a cut is made: by dropping packets and
// holding streams, never by asking a component to pretend.
//
// # What it does
//
// Every ordered pair of hosts has a link of its own, so delay and cuts may
// differ by direction. A cut always has an end: nothing stays cut because a
// test or a rehearsal died before it could heal.
//
// A packet is delivered once, in order, one delay after it was sent. It is
// dropped, and counted, when the link is cut as it is sent or as it is due,
// when nobody listens, and when a queue on its way is full.
//
// A stream delivers every byte in order, one delay after it was written. While
// its direction is cut nothing of it arrives, its end included; after the cut
// everything still on the way is sent again, as TCP would, and arrives one
// delay after the heal. A long cut therefore makes messages arrive very late,
// which is wanted: receivers must cope. A dial takes a round trip and needs
// both directions; during a cut it hangs until its context ends.
//
// # What it does not do
//
// There is no loss outside cuts, no duplication, no reordering and no limit on
// bandwidth. A stream has no half-close: closing ends both directions, and the
// far end learns of it when the close arrives there.
//
// # How
//
// One mutex guards the whole network, each link has one timer, and a
// connection has no goroutine. Nothing polls, and no real socket is opened, so
// everything here also runs on the virtual clock of a testing/synctest bubble,
// as long as the network is used inside one bubble only.
//
// # Real sockets
//
// A [Gate] makes the same cuts between real processes: it stands before the
// sockets of one of them and tells the others apart by their IP addresses. It
// has no delay, and its clock is that of the machine.
package link
