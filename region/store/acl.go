package store

// MinimalACL are the rules of Redis' ACL SETUSER for the user that quotad logs in as; beside them it needs a password.
// Only a Redis Cluster is asked for its slots.
const MinimalACL = "on ~" + Prefix + "* -@all +eval +evalsha +script|load +info +ping +time " +
	"+hget +hset +hmget +hdel +get +set +del +pexpireat +cluster|slots"
