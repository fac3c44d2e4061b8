package store

// Prefix begins every key quotad writes. All keys of a store share one hash tag, so that a script may touch any of
// them together; bucket ids hold lengths before each part, so that different buckets never share a key.
const Prefix = "{quotad}:"

// TokenKey is the key of the store's token, KEYS[1] of every script.
const TokenKey = Prefix + "token"

// BucketKey returns the key of a bucket's hash.
func BucketKey(id string) string { return Prefix + "b:" + id }

// OnceKey returns the key under which a request that is to be charged once is remembered.
func OnceKey(digest string) string { return Prefix + "o:" + digest }

// RefundKey returns the key under which it is remembered that a receipt was refunded.
func RefundKey(receipt string) string { return Prefix + "r:" + receipt }
