package journal

import (
	"bytes"
	"slices"
)

// Incarnation is Journal.Incarnation.
func (m *Memory) Incarnation() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.incarnation
}

// Sequence is Journal.Sequence. It rises with every commit as the file's does,
// though by other steps: the file's commits may carry several calls.
func (m *Memory) Sequence() uint64 { return m.Stats().Sequence }

// Generation is Journal.Generation.
func (m *Memory) Generation() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.generation
}

// SetGeneration is Journal.SetGeneration.
func (m *Memory) SetGeneration(g uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := validateGeneration(m.generation, g); err != nil {
		return err
	}
	return m.save(g == m.generation, func() { m.generation = g })
}

// WholeSince is Journal.WholeSince.
func (m *Memory) WholeSince() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wholeSince
}

// SetWholeSince is Journal.SetWholeSince.
func (m *Memory) SetWholeSince(t int64) error {
	if err := validateWholeSince(t); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.save(t == m.wholeSince, func() { m.wholeSince = t })
}

// StoreTime is Journal.StoreTime.
func (m *Memory) StoreTime() (seen, latest int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.storeTime.seen, m.storeTime.latest
}

// SetStoreTime is Journal.SetStoreTime.
func (m *Memory) SetStoreTime(seen, latest int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next := storeTime{max(m.storeTime.seen, seen), max(m.storeTime.latest, latest)}
	return m.save(next == m.storeTime, func() { m.storeTime = next })
}

// Peers is Journal.Peers.
func (m *Memory) Peers() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.peers)
}

// RememberPeers is Journal.RememberPeers.
func (m *Memory) RememberPeers(addresses []string) error {
	if err := validateAddresses(addresses); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.save(slices.Equal(addresses, m.peers), func() { m.peers = slices.Clone(addresses) })
}

// Policy is Journal.Policy.
func (m *Memory) Policy() (version int64, source []byte, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.policy.version, bytes.Clone(m.policy.source), m.policy.saved
}

// SavePolicy is Journal.SavePolicy.
func (m *Memory) SavePolicy(version int64, source []byte) error {
	if err := validatePolicy(version, source); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.policy
	same := p.saved && p.version == version && bytes.Equal(p.source, source)
	return m.save(same, func() {
		m.policy = policy{saved: true, version: version, source: bytes.Clone(source)}
	})
}

func (m *Memory) save(same bool, change func()) error {
	if err := m.sync(); err != nil || same {
		return err
	}
	return m.commit(change)
}
