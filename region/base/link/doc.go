// Package link makes cuts between real processes, for rehearsals of faults. A [Gate] stands before
// the sockets of one process and tells the other processes apart by their IP addresses. While an
// address is cut, packets to and from it are dropped, streams stall and dials hang, as on a network
// that drops packets. No component needs to pretend. Every cut ends by itself, so nothing stays cut
// if a rehearsal dies before it can heal.
//
// A Gate adds no delay and uses the machine's clock. The in-memory network of tests and demos is
// chaos/lab/network. The connections of both use [Deadline].
package link
