package store

import "strings"

// scriptCommands are the commands that quotad's scripts call, in the words of an ACL. Each needs a
// right of its own.
var scriptCommands = []string{"time", "hget", "hset", "hmget", "hdel", "get", "set", "del",
	"pexpireat", "hkeys"}

// spare are the rights that a node can do without. Without the first, a harmless event may count as
// a loss. Without the second, a node whose journal was lost cannot read what its store has.
var spare = []string{"+hkeys", "+scan"}

// MinimalACL is the list of rules for Redis' ACL SETUSER for the user that quotad logs in as. The
// user also needs a password. Only a Redis Cluster is asked for its slots.
var MinimalACL = "on ~" + Prefix + "* -@all +eval +evalsha +script|load +info +ping +scan +" +
	strings.Join(scriptCommands, " +") + " +cluster|slots"
