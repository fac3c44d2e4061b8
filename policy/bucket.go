package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"
)

// BucketID names a bucket: one limit applied to one key. It is a row of
// netstrings (domain, name, algorithm, window in nanoseconds, then the name and
// value of each part of the key), the same in every region and process, and
// different buckets never have the same ID.
//
// Values of descriptors are taken byte by byte, so an ID need not be UTF-8:
// carry it as bytes.
type BucketID string

// BucketRef is what a BucketID says.
type BucketRef struct {
	Domain    string
	Name      string
	Algorithm Algorithm
	Window    time.Duration
	Key       []KeyValue
}

// KeyValue is one part of a key.
type KeyValue struct {
	Name  string
	Value string
}

// usualIDBytes is room for most IDs, so that building one allocates once.
const usualIDBytes = 256

// Bucket returns the bucket of a request. The caller guarantees that the limit
// applies to the descriptors, as it does for a limit that [Matcher.Append]
// returned for them.
func (l *Limit) Bucket(descriptors map[string]string) BucketID {
	buf := make([]byte, 0, usualIDBytes)
	buf = appendBucketHead(buf, l.Domain, l.Name, l.Algorithm, l.Window)
	for _, name := range l.Key {
		buf = appendNetstring(buf, name)
		buf = appendNetstring(buf, descriptors[name])
	}
	return BucketID(buf)
}

// ID returns the ID that [ParseBucketID] reads as r.
func (r BucketRef) ID() BucketID {
	buf := make([]byte, 0, usualIDBytes)
	buf = appendBucketHead(buf, r.Domain, r.Name, r.Algorithm, r.Window)
	for _, kv := range r.Key {
		buf = appendNetstring(buf, kv.Name)
		buf = appendNetstring(buf, kv.Value)
	}
	return BucketID(buf)
}

func appendBucketHead(buf []byte, domain, name string, a Algorithm, window time.Duration) []byte {
	var digits [20]byte
	buf = appendNetstring(buf, domain)
	buf = appendNetstring(buf, name)
	buf = appendNetstring(buf, string(a))
	return appendNetstring(buf, string(strconv.AppendInt(digits[:0], int64(window), 10)))
}

// Hash returns a hash of the ID that is the same everywhere and in every
// version. It spreads buckets over shards and rotates remainders of divisions
// between regions; it is no defence against chosen keys.
func (id BucketID) Hash() uint64 { return xxhash.Sum64String(string(id)) }

// ParseBucketID reads an ID that came from elsewhere. It accepts exactly the
// IDs that a valid document can produce under any version of quotad that knows
// the same algorithms, and ref.ID() gives the same ID back.
func ParseBucketID(id BucketID) (BucketRef, error) {
	fields, err := splitNetstrings(string(id))
	if err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	const head = 4
	if len(fields) < head+2 || len(fields)%2 != 0 || len(fields) > head+2*MaxKeyNames {
		return BucketRef{}, badBucketID(id, fmt.Errorf("%d fields, which is not 4 and then 1 to %d pairs", len(fields), MaxKeyNames))
	}
	ref := BucketRef{Domain: fields[0], Name: fields[1], Algorithm: Algorithm(fields[2])}
	if ref.Window, err = parseWindowField(fields[3]); err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	for pair := range slices.Chunk(fields[head:], 2) {
		ref.Key = append(ref.Key, KeyValue{pair[0], pair[1]})
	}
	if err := ref.check(); err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	return ref, nil
}

func splitNetstrings(text string) ([]string, error) {
	fields := make([]string, 0, 6)
	for at := 0; at < len(text); {
		value, rest, err := cutNetstring(text[at:])
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", at, err)
		}
		fields = append(fields, value)
		at = len(text) - len(rest)
	}
	return fields, nil
}

func parseWindowField(digits string) (time.Duration, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	window := time.Duration(n)
	if err != nil || !isInteger(digits) || window < MinWindow || window > MaxWindow || window%time.Microsecond != 0 {
		return 0, fmt.Errorf("window %q is not a whole number of microseconds from 10ms to 366d, in nanoseconds", truncate(digits))
	}
	return window, nil
}

// check looks at the names, which reach metrics, logs and keys.
func (r BucketRef) check() error {
	if !limitNames.holds(r.Domain) {
		return fmt.Errorf("domain %q is not a valid name", truncate(r.Domain))
	}
	if !limitNames.holds(r.Name) {
		return fmt.Errorf("limit name %q is not valid", truncate(r.Name))
	}
	if !r.Algorithm.Known() {
		return fmt.Errorf("algorithm %q is not known", truncate(string(r.Algorithm)))
	}
	for i, kv := range r.Key {
		if !descriptorNames.holds(kv.Name) {
			return fmt.Errorf("key name %q is not valid", truncate(kv.Name))
		}
		if slices.ContainsFunc(r.Key[:i], func(o KeyValue) bool { return o.Name == kv.Name }) {
			return errors.New("key name " + kv.Name + " appears twice")
		}
	}
	return nil
}

func badBucketID(id BucketID, err error) error {
	return fmt.Errorf("bucket ID %q: %w; it was not made by Limit.Bucket of a compatible quotad", truncate(string(id)), err)
}
