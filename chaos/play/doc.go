// Package play is the group of those who act as the world does:
//
//	a seed     -> sim (whole regions and their faults, in virtual time) -> judge/oracle
//	a workload -> workload (demand as plain data) -> sim and rivals
//	a world    -> world (regions in one process, in real time), for the demo and dev
//	a caller   -> caller (a service), envoy (an Envoy)
package play
