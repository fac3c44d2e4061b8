package simulation

import (
	"encoding/hex"

	"github.com/quotad/quotad/chaos/play/sim"
	"github.com/quotad/quotad/cmd/quotad/build"
)

// simulated is the output of quotad simulate -o json.
type simulated struct {
	OK       bool             `json:"ok"`
	Build    build.Info       `json:"build"`
	Seeds    uint64           `json:"seeds"`
	Lua      uint64           `json:"lua_seeds"`
	Virtual  float64          `json:"virtual_seconds"`
	Took     float64          `json:"seconds"`
	Events   int64            `json:"events"`
	Requests int64            `json:"requests"`
	Admitted int64            `json:"admitted"`
	Faults   map[string]int64 `json:"faults"`
	// Rows says how often each row of the fault matrix fired.
	Rows map[int]int64 `json:"rows"`
	// Trace covers every event, effect and decision.
	Trace  string      `json:"trace_sha256"`
	Broken *brokenSeed `json:"broken,omitempty"`
}

type brokenSeed struct {
	Seed      uint64   `json:"seed"`
	Invariant string   `json:"invariant"`
	Text      string   `json:"text"`
	At        float64  `json:"at_seconds"`
	Acts      []string `json:"acts"`
	Document  string   `json:"document"`
	Timeline  string   `json:"timeline"`
	Replay    string   `json:"replay"`
}

func (s *Simulation) document(t sim.Tally, f *sim.Failure) simulated {
	d := simulated{OK: f == nil, Build: build.This(), Seeds: t.Seeds, Lua: t.Lua,
		Virtual: t.Virtual.Seconds(), Took: t.Took.Seconds(),
		Events: t.Counts.Events, Requests: t.Counts.Requests, Admitted: t.Counts.Admitted,
		Faults: map[string]int64{}, Rows: map[int]int64{},
		Trace: hex.EncodeToString(t.Digest[:])}
	for deed, n := range t.Counts.Deeds {
		if !deed.Load() {
			d.Faults[string(deed)] = n
		}
	}
	for row := range sim.RowNames {
		d.Rows[row] = t.Counts.Rows[row]
	}
	if f == nil {
		return d
	}
	d.Broken = &brokenSeed{Seed: f.Seed, Invariant: f.Broken.Invariant, Text: f.Broken.Text,
		At:       f.Broken.At.Seconds(),
		Document: f.Texts(), Timeline: f.Timeline, Replay: s.replay(f)}
	for _, a := range f.Acts {
		d.Broken.Acts = append(d.Broken.Acts, a.String())
	}
	return d
}
