package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/memberlist"
)

// maxKeys bounds the keys in force: a packet that none of them opens is tried with all.
const maxKeys = 8

var (
	errKeyless = errors.New(
		"gossip: no keys are given, and a node that encrypts cannot go over to plain text: restart it without keys")
	errWasPlain = errors.New(
		"gossip: the node runs in plain text and cannot begin to encrypt: restart it with keys")
)

// SetKeys puts other keys in force, as Config.Keys does at the start: the first encrypts what is
// sent from now on, and all decrypt. It fails and changes nothing if the node started without keys,
// or if the keys are invalid.
//
// To go from an old key to a new one without any node losing sight of another, first give all nodes
// (old, new). When all have them, give all (new, old). When all have those, give all (new).
func (g *Gossip) SetKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return errKeyless
	}
	if err := checkKeys(keys); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.keys == nil {
		return errWasPlain
	}
	return install(g.keys, keys)
}

func checkKeys(keys [][]byte) error {
	if len(keys) > maxKeys {
		return fmt.Errorf("%d keys are given, at most %d can be in force: drop those that no node encrypts with any more", len(keys), maxKeys)
	}
	for i, k := range keys {
		if memberlist.ValidateKey(k) != nil {
			return fmt.Errorf("key %d of %d has %d bytes, want 16, 24 or 32 for AES-128, -192 or -256", i+1, len(keys), len(k))
		}
	}
	return nil
}

// newRing returns a keyring for memberlist, or nil, for plain text, if there are no keys.
func newRing(keys [][]byte) (*memberlist.Keyring, error) {
	if len(keys) == 0 {
		return nil, nil
	}
	ring, err := memberlist.NewKeyring(nil, bytes.Clone(keys[0]))
	if err != nil {
		return nil, err
	}
	return ring, install(ring, keys)
}

// install makes a ring hold these keys and no others. memberlist decrypts packets from the ring's
// slice while install runs, and removing a key shifts the keys behind it within that slice. So
// install removes keys from the end only, and puts back those that stay.
func install(ring *memberlist.Keyring, keys [][]byte) error {
	if err := add(ring, keys); err != nil {
		return err
	}
	if err := ring.UseKey(keys[0]); err != nil {
		return err
	}
	held := ring.GetKeys()
	first := slices.IndexFunc(held, func(k []byte) bool { return !holds(keys, k) })
	if first < 0 {
		return nil
	}
	for _, k := range slices.Backward(held[first:]) {
		if err := ring.RemoveKey(k); err != nil {
			return err
		}
	}
	return add(ring, keys)
}

func add(ring *memberlist.Keyring, keys [][]byte) error {
	for _, k := range keys {
		if err := ring.AddKey(bytes.Clone(k)); err != nil {
			return err
		}
	}
	return nil
}

func holds(keys [][]byte, key []byte) bool {
	return slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, key) })
}
