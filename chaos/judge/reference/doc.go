// Package reference has a model of envoyproxy/ratelimit, against which a test compares a node's
// answers to Envoy (node_test.go). It is tests alone. The model (model_test.go) reads the same
// configuration files, answers the same requests in virtual time, and has counts in a map instead of
// a Redis.
//
// A Server has one of four habits. Charged is that of envoyproxy/ratelimit: each descriptor of
// a request is decided alone and charged, whether it is denied or not. The others are quotad's.
// With Apart a descriptor that is denied is not charged, with Always it is. With Together all descriptors of a
// request are charged or none.
//
// The model shares no code with package envoyimport or with the node, which it judges. It is made
// to be read, not to be fast. Source draws configurations and requests that meet them.
//
// With the build tag reference, TestReference plays the same requests to envoyproxy/ratelimit itself
// and to a node with the same configurations, and compares the answers of both with the models of
// their habits, and with each other where every descriptor costs 1. make reference runs it.
//
// Two habits of envoyproxy/ratelimit are modelled that quotad does not have, because they come from
// how it writes keys. A descriptor user_id without a value also meets an entry with key user and
// value id. And a request whose value ends with a * itself meets the descriptor that is written the
// same way, whatever stands before it. What Source draws meets neither.
package reference
