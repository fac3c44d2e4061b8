package servers

import "time"

// DrivenCopy is the data that a Driven had at a moment, as a replica has that lags behind it.
type DrivenCopy struct{ keys map[string]copiedKey }

// copiedKey is a hash or a text: quotad writes nothing else.
type copiedKey struct {
	fields map[string]string // nil: it is a text
	text   string
	ends   time.Time // zero: never
}

// Copy returns the server's data of now.
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
			fields, _ := db.HKeys(key) // it is there, and a hash
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

// Promote puts a copy in the place of the server's data, under another master_replid, as a failover does.
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
			_ = db.Set(key, k.text) // nothing of another kind is in its place
		}
		if !k.ends.IsZero() {
			db.SetTTL(key, k.ends.Sub(d.now))
		}
	}
	d.Rename(replid)
}
