package store

import "strings"

// scriptCommands are the commands that quotad's scripts call, in the words of an ACL. Each needs a
// right of its own.
var scriptCommands = []string{"time", "hget", "hset", "hmget", "hdel", "get", "set", "del",
	"pexpireat", "hkeys"}

// spare are the rights without which a node works. What loses nothing may then count as a loss.
var spare = []string{"+hkeys"}

// MinimalACL is the list of rules for Redis' ACL SETUSER for the user that quotad logs in as. The
// user also needs a password. Only a Redis Cluster is asked for its slots.
var MinimalACL = "on ~" + Prefix + "* -@all +eval +evalsha +script|load +info +ping +" +
	strings.Join(scriptCommands, " +") + " +cluster|slots"
