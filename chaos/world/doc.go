// Package world runs a whole quotad in one process: for each region a Redis of its own, a node with gossip and
// journal, and between the regions a network with delay and cuts (chaos/lab/network). story.go plays the demo on it: load,
// a partition, a flood and a heal, judged from outside by chaos/oracle.
package world
