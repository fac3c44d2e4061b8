// Package link makes cuts between real processes, for rehearsals of faults. A [Gate] stands before
// the sockets of one process and tells the others apart by their IP addresses. While an address is
// cut, packets to and from it are dropped, streams stall and dials hang, as on a network that drops
// packets. No component has to pretend. Every cut ends by itself, so that nothing stays cut because
// a rehearsal died before it could heal.
//
// A Gate adds no delay, and its clock is that of the machine. The network in memory that tests and
// demos use is chaos/lab/network. A [Deadline] serves the connections of both.
package link
