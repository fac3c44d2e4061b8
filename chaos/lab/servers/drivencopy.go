package servers

import "time"

// DrivenCopy is a copy of the data of a Driven, as on a replica that lags behind.
type DrivenCopy struct{ keys map[string]copiedKey }

// copiedKey is a hash or a string: quotad writes nothing else.
type copiedKey struct {
	fields map[string]string // nil: it is a string
	text   string
	ends   time.Time // when it expires; zero: never
}

// Copy returns a copy of the server's present data.
func (d *Driven) Copy() *DrivenCopy {
	db := d.redis.DB(0)
	c := &DrivenCopy{keys: map[string]copiedKey{}}
	for _, key := range db.Keys() {
		var k copiedKey
		if left := db.TTL(key); left > 0 {
			k.ends = d.now.Add(left)
		}
		if db.Type(key) == "hash" {
			k.fields = map[string]string{}
			fields, _ := db.HKeys(key) // the key exists, and is a hash
			for _, field := range fields {
				k.fields[field] = db.HGet(key, field)
			}
		} else {
			k.text, _ = db.Get(key)
		}
		c.keys[key] = k
	}
	return c
}

// Promote replaces the server's data with a copy, under another master_replid, as a failover does.
func (d *Driven) Promote(c *DrivenCopy, replid string) {
	d.redis.FlushAll()
	db := d.redis.DB(0)
	for key, k := range c.keys {
		if !k.ends.IsZero() && !k.ends.After(d.now) {
			continue
		}
		for field, value := range k.fields {
			db.HSet(key, field, value)
		}
		if k.fields == nil {
			_ = db.Set(key, k.text) // no key of another type is in its place
		}
		if !k.ends.IsZero() {
			db.SetTTL(key, k.ends.Sub(d.now))
		}
	}
	d.Rename(replid)
}
