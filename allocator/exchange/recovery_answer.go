package exchange

import "github.com/quotad/quotad/quantity"

// onQuestioned answers a question about our own region, or about what our store has heard of a
// peer. If another node of our region asks under a later generation than ours, this node is fenced
// until its own store is opened under that generation. A question whose generation is further ahead
// than any clock can be is refused: neither this node nor its store fences for it.
func (m *Machine) onQuestioned(now quantity.NodeTime, e Questioned) {
	c := Consult{ID: e.ID, Buckets: e.Buckets, Question: e.Question}
	ours, from := e.Question.From == m.region, m.peer(e.Question.From)
	switch {
	case !ours && (from == nil || !from.believes(m, now, e.Question.Generation)),
		ours && !m.believes(now, e.Question.Generation, max(m.generation, m.fence)):
		m.stats.Implausible++
		refused := make([]Testimony, len(e.Question.Buckets))
		for i, d := range e.Question.Buckets {
			refused[i] = Testimony{Bucket: d.Bucket, Refused: true}
		}
		m.testify(c, refused, nil)
		return
	case ours:
		m.fence = max(m.fence, e.Question.Generation)
		if m.fence > m.generation {
			clear(m.serving)
		}
	default:
		c.Peer = e.Question.From
	}
	m.out.Consults = append(m.out.Consults, c)
}

func (m *Machine) testify(c Consult, all []Testimony, copies []Copied) {
	t := Testimonies{From: m.region, Node: m.node, ForGeneration: c.Generation, All: all, Copies: copies}
	if p := m.peer(c.Peer); p != nil {
		t.Heard = p.heardOf()
	}
	m.out.Testify = append(m.out.Testify, Testify{ID: c.ID, Testimonies: t})
}

// onConsulted sends what was found to the node that asked. If the question was our own, it takes
// the answer in.
func (m *Machine) onConsulted(now quantity.NodeTime, e Consulted) {
	if e.Consult.ID != 0 {
		m.testify(e.Consult, e.All, e.Copies)
		return
	}
	m.onTestified(now, Testimonies{From: m.region, Node: m.node,
		ForGeneration: e.Consult.Generation, All: e.All, Copies: e.Copies})
}
