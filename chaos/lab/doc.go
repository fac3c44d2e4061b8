// Package lab holds what only simulations, demos and tests use in the place of the world: a Redis server in memory, whose
// scripts the Go twin answers (twin.go, and way.go to reach it), an embedded one whose calls fail when they are told to
// (driven.go), and a disk in memory below a journal (disk.go). Package servers, below, starts real and embedded Redis servers,
// package network has hosts that are connected in memory, package journals opens journals on such disks, package node steps whole
// nodes by hand, and package documents writes limits documents for tests. Which stores nodes have under the race detector says
// ontwins.go.
//
// It imports the seams that it stands behind, and nothing that drives whole nodes; packages node, journals and documents may.
package lab
