package store

import "strings"

// scriptCommands are the commands that quotad's scripts call, in the words of an ACL: a right for
// each.
var scriptCommands = []string{"time", "hget", "hset", "hmget", "hdel", "get", "set", "del", "pexpireat"}

// MinimalACL are the rules of Redis' ACL SETUSER for the user that quotad logs in as; beside them
// it needs a password. Only a Redis Cluster is asked for its slots.
var MinimalACL = "on ~" + Prefix + "* -@all +eval +evalsha +script|load +info +ping +" +
	strings.Join(scriptCommands, " +") + " +cluster|slots"
