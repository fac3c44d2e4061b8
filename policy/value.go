package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

const (
	// MaxValueBytes is the longest value that stands in a BucketID unchanged. Whoever
	// sends requests chooses values, and IDs travel in hints, asks, rows and the journal, and are
	// Redis keys. So a longer value is replaced by its digest. The number can never change, because
	// buckets are found by their IDs.
	MaxValueBytes = 64
	// digestBytes is the length of a digest: a mark and 64 hexadecimal digits. It is longer than
	// any value that stands unchanged, so no such value looks like a digest.
	digestBytes = len(digestMark) + 2*sha256.Size
	digestMark  = "#"
	// MaxBucketIDBytes is the length of the longest ID: that of a document in which everything is
	// as long as it may be. At most 8 times 65 bytes of it are values of a request.
	MaxBucketIDBytes = 2400
)

// hashedText stands before a value whose digest is taken. No other digest of quotad's begins this
// way.
const hashedText = "quotad: value of a key\x00"

// usualValueBytes is room for a value to be hashed: one longer than this is copied to the heap.
const usualValueBytes = 512

// appendValue appends a value of a key as it stands in a BucketID: a netstring of itself, or of the
// digest of a long one. Different values never become the same, unless somebody finds two with one
// SHA-256. Each value is shortened by itself, whatever else is in the ID, so that an entity has one
// name in the IDs of all its buckets.
func appendValue(dst []byte, value string) []byte {
	if len(value) <= MaxValueBytes {
		return appendNetstring(dst, value)
	}
	digest := digestOf(value)
	return appendNetstring(dst, digest[:])
}

// shortened returns a value as it stands in a BucketID.
func shortened(value string) string {
	if len(value) <= MaxValueBytes {
		return value
	}
	digest := digestOf(value)
	return string(digest[:])
}

// digestOf returns what stands in a BucketID for a long value.
func digestOf(value string) (text [digestBytes]byte) {
	var room [len(hashedText) + usualValueBytes]byte
	digest := sha256.Sum256(append(append(room[:0], hashedText...), value...))
	copy(text[:], digestMark)
	hex.Encode(text[len(digestMark):], digest[:])
	return text
}

// isDigest reports whether a value is the digest of one that was too long for an ID.
func isDigest(value string) bool {
	digits, marked := strings.CutPrefix(value, digestMark)
	return marked && len(value) == digestBytes && strings.Trim(digits, "0123456789abcdef") == ""
}

// checkValue refuses a value that cannot stand in an ID.
func checkValue(value string) error {
	if len(value) <= MaxValueBytes || isDigest(value) {
		return nil
	}
	return fmt.Errorf("a value of %d bytes: %w", len(value), errLongValue)
}

var errLongValue = errors.New("a value of more than 64 bytes is given by its digest")
