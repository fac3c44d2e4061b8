package journal

import (
	"bytes"
	"maps"
	"slices"
)

// Copy returns the model of a copy of the file as it is on the disk now: another journal, that shares nothing with this one
// and opens as its next incarnation would.
func (m *Memory) Copy() *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := &Memory{
		rows: maps.Clone(m.rows), checkpoints: maps.Clone(m.checkpoints), generation: m.generation, wholeSince: m.wholeSince, storeTime: m.storeTime,
		peers: slices.Clone(m.peers), policy: m.policy, incarnation: m.incarnation, stats: m.stats,
	}
	c.policy.source = bytes.Clone(m.policy.source)
	c.Crash()
	return c
}
