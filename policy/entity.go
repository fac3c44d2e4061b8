package policy

// Entity returns the value of the first part of the key: the account, tenant or address whose
// buckets a store keeps together, so that one request may charge them atomically. A long value is
// its digest here, as in all IDs of the entity. Entity is empty for an ID that [ParseBucketID]
// refuses.
func (id BucketID) Entity() string {
	const before = 5 // domain, name, algorithm, window and the name of the part
	rest := string(id)
	for range before {
		var err error
		if _, rest, err = cutNetstring(rest); err != nil {
			return ""
		}
	}
	value, _, err := cutNetstring(rest)
	if err != nil {
		return ""
	}
	return value
}
