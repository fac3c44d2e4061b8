// Package quantity names what the numbers of quotad count, so that the compiler tells them apart.
// It is a leaf: it imports package time alone.
//
// Lengths of time are plain int64, in microseconds, unless a name says otherwise.
package quantity

import "time"

// Duration returns a length of time as Go has it.
func Duration(microseconds int64) time.Duration {
	return time.Duration(microseconds) * time.Microsecond
}

// Units are units of quota. A request costs at least one. Amounts that a region has, lends or is
// short of are not negative; a difference may be.
type Units int64

// Cell is the number of a cell, the stretch of time for which rights are counted: cell n of a
// bucket begins n cell lengths after 1970 by the store's clock. Where cells are periods of a
// calendar, package calendar says what their numbers are.
type Cell int64

// OpensAt returns when the cell begins, where cells are that many microseconds long.
func (c Cell) OpensAt(length int64) StoreTime { return StoreTime(int64(c) * length) }

// StoreTime is a time by a store's clock, in microseconds since 1970. Stores of different regions
// may disagree.
type StoreTime int64

// Add returns the time that many microseconds later.
func (t StoreTime) Add(microseconds int64) StoreTime { return t + StoreTime(microseconds) }

// Sub returns how many microseconds t is after u.
func (t StoreTime) Sub(u StoreTime) int64 { return int64(t - u) }

// NodeTime is a time by a node's own clock, in microseconds since some moment before the node
// started. It never goes back, and means nothing to another node.
type NodeTime int64

// Add returns the time that many microseconds later.
func (t NodeTime) Add(microseconds int64) NodeTime { return t + NodeTime(microseconds) }

// Sub returns how many microseconds t is after u.
func (t NodeTime) Sub(u NodeTime) int64 { return int64(t - u) }

// PPM is a fraction in parts per million.
type PPM int64

// MilliRate is a rate in thousandths of a unit per second.
type MilliRate int64
