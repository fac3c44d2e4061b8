package policy

import (
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// BucketID names a bucket: one entry of the document applied to one key. It is the same in every
// region and process, and different buckets never have the same ID.
//
// It is a sequence of netstrings: domain, name, algorithm, window in nanoseconds or the text of its
// Period (and assignedMark behind it for a limit with assign), the name and value of each part of
// the key and, if the entry has conditions, an empty string and the name and value of each
// condition. No name is empty, so the empty string marks where the key ends.
//
// The conditions belong to the ID because entries of one name may have different limits: rights
// borrowed under one limit must not count as borrowed under another.
//
// Values of descriptors are taken byte by byte, so an ID need not be UTF-8: carry it as bytes. A
// value, of the key or of a condition, that is longer than MaxValueBytes is replaced by its digest, so an ID is at most MaxBucketIDBytes
// long.
type BucketID string

// BucketRef is the content of a BucketID.
type BucketRef struct {
	Domain    string
	Name      string
	Algorithm Algorithm
	Window    time.Duration // 0 if there is a Period
	Period    Period
	// Key holds the parts of the key in the order of the document.
	Key []KeyValue
	// Match holds the conditions of the entry, sorted by name, each name once, at
	// most MaxConditions. It is nil for an entry without conditions.
	Match []Condition
	// Assigned says that the limit is a TokenBucket with assign, so that its cells are AssignCell
	// long.
	Assigned bool
}

// KeyValue is one part of a key, with the value as it stands in a BucketID.
type KeyValue struct {
	Name  string
	Value string
}

// usualIDBytes is room for most IDs, so that building one allocates once.
const usualIDBytes = 256

// idText is the text that all IDs of an entry have in common.
type idText struct {
	before []string // for each name of the key, what stands before its value
	after  string   // what stands after the last value
}

func idTextOf(l *Limit) idText {
	match := slices.Clone(l.Match)
	for i := range match {
		match[i].Value = shortened(match[i].Value)
	}
	text := idText{before: make([]string, len(l.Key)), after: string(appendConditions(nil, match))}
	before := appendBucketHead(nil, l.Domain, l.Name, l.Algorithm, windowText(l.Window, l.Period, l.Assign != nil && l.Algorithm == TokenBucket))
	for i, name := range l.Key {
		text.before[i] = string(appendNetstring(before, name))
		before = nil // the head stands before the first name alone
	}
	return text
}

// Bucket returns the bucket of a request. The caller guarantees that the limit
// applies to the descriptors, as it does for a limit that [Matcher.Append]
// returned for them. The limit must be one of a parsed document.
func (l *Limit) Bucket(descriptors map[string]string) BucketID {
	return BucketID(l.AppendBucket(make([]byte, 0, usualIDBytes), descriptors))
}

// AppendBucket appends the bytes of [Limit.Bucket] to buf, at most MaxBucketIDBytes of them. If buf
// has room for them it allocates nothing, unless a value is longer than 512 bytes.
func (l *Limit) AppendBucket(buf []byte, descriptors map[string]string) []byte {
	for i, name := range l.Key {
		value, known := descriptors[name]
		if known && l.Entries != nil {
			value = l.Entries[l.keyPlaces[i]].counted(value)
		}
		buf = append(buf, l.id.before[i]...)
		buf = appendValue(buf, value)
	}
	return append(buf, l.id.after...)
}

// AppendBucketOf is AppendBucket for a limit that [Matcher.AppendList] returned for the list.
func (l *Limit) AppendBucketOf(buf []byte, list []KeyValue) []byte {
	for i, name := range l.Key {
		buf = append(buf, l.id.before[i]...)
		if l.Entries != nil {
			place := l.keyPlaces[i]
			buf = appendValue(buf, l.Entries[place].counted(list[place].Value))
			continue
		}
		value, _ := valueIn(list, name)
		buf = appendValue(buf, value)
	}
	return append(buf, l.id.after...)
}

// ID returns the ID that [ParseBucketID] reads as r. It writes the values as they are in r, where a
// long value is a digest already.
func (r BucketRef) ID() BucketID {
	buf := make([]byte, 0, usualIDBytes)
	buf = appendBucketHead(buf, r.Domain, r.Name, r.Algorithm, windowText(r.Window, r.Period, r.Assigned))
	for _, kv := range r.Key {
		buf = appendNetstring(buf, kv.Name)
		buf = appendNetstring(buf, kv.Value)
	}
	return BucketID(appendConditions(buf, r.Match))
}

// windowText returns what stands in an ID for the windows.
func windowText(window time.Duration, p Period, assigned bool) string {
	switch {
	case p != "":
		return string(p)
	case assigned:
		return strconv.FormatInt(int64(window), 10) + assignedMark
	}
	return strconv.FormatInt(int64(window), 10)
}

// assignedMark stands behind the window of a TokenBucket with assign: with other cells it is
// another bucket.
const assignedMark = "/assign"

func appendBucketHead(buf []byte, domain, name string, a Algorithm, window string) []byte {
	buf = appendNetstring(buf, domain)
	buf = appendNetstring(buf, name)
	buf = appendNetstring(buf, string(a))
	return appendNetstring(buf, window)
}

// conditionsMark stands between the key and the conditions, in place of the name of a further part
// of the key.
const conditionsMark = ""

func appendConditions(buf []byte, match []Condition) []byte {
	if len(match) == 0 {
		return buf
	}
	buf = appendNetstring(buf, conditionsMark)
	for _, c := range match {
		buf = appendNetstring(buf, c.Name)
		buf = appendNetstring(buf, c.Value)
	}
	return buf
}

// Hash returns a hash of the ID that is the same everywhere and in every version. It spreads
// buckets over shards and rotates remainders of divisions between regions. It does not protect
// against keys chosen to collide.
func (id BucketID) Hash() uint64 { return xxhash.Sum64String(string(id)) }
