package roles

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strings"
)

const (
	// tokenPrefix tells tokens from other secrets, for whoever scans for leaked ones.
	tokenPrefix = "qt1_"
	// tokenBytes is how much of a token is random. Nobody finds 256 bits by trying, so one SHA-256
	// is enough to keep them secret, and a slow hash would only slow every call.
	tokenBytes = 32
	// minToken and maxToken bound the length of a token that somebody presents.
	minToken, maxToken = 32, 256
	// hashPrefix stands before the hash of a token in the roles file.
	hashPrefix = "sha256:"
)

// hash is the SHA-256 of a token.
type hash [sha256.Size]byte

// NewToken returns a new token, and its hash as the roles file has it.
func NewToken() (token, hashed string) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never fails
	token = tokenPrefix + base64.RawURLEncoding.EncodeToString(random)
	return token, HashToken(token)
}

// HashToken returns the hash of a token as the roles file has it.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hashPrefix + hex.EncodeToString(sum[:])
}

// hashOf returns the hash of a token that somebody presents, without allocating. ok is false if its
// length is that of no token.
func hashOf(token string) (sum hash, ok bool) {
	if len(token) < minToken || len(token) > maxToken {
		return sum, false
	}
	var text [maxToken]byte
	return sha256.Sum256(text[:copy(text[:], token)]), true
}

// readHash reads a hash of the roles file.
func readHash(text string) (sum hash, ok bool) {
	digits, found := strings.CutPrefix(text, hashPrefix)
	if !found || hex.DecodedLen(len(digits)) != len(sum) || len(digits)%2 != 0 {
		return sum, false
	}
	_, err := hex.Decode(sum[:], []byte(digits))
	return sum, err == nil
}
