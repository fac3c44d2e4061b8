//go:build !race

package assign

// take has an Envoy take an assignment, unless its stream is over.
func (w *world) take(n *worldNode, e *worldEnvoy, s Send, of *told) {
	if e == nil || e.node != n || e.stream != s.Stream {
		return
	}
	if w.now < e.paused {
		w.queue = append(w.queue, message{e.paused, func() { w.take(n, e, s, of) }})
		return
	}
	w.took(n, s, of)
	e.by = n.name
	if w.now >= e.expires || e.rate != s.Rate || e.burst != s.Burst {
		e.rate, e.burst, e.tokens = s.Rate, s.Burst, float64(s.Burst)
		e.rebuilt++
	}
	e.expires = w.now + s.TTL*second
}

func (w *world) envoy(e *worldEnvoy) {
	dt := float64(step) / second
	e.tokens = min(e.tokens+float64(e.rate)*dt, float64(e.burst))
	e.carry += e.demand * dt * 2 * w.rand.Float64()
	for ; e.carry >= 1; e.carry-- {
		w.offered++
		if w.now < e.expires && e.tokens >= 1 {
			e.tokens--
			e.allowed++
			w.admit(1)
			w.spend(e.by)
			continue
		}
		e.denied++
	}
	if w.now < e.nextSend || w.now < e.paused {
		return
	}
	e.nextSend = w.now + ReportEvery
	if e.node == nil || e.node.dead {
		e.node = w.nodes[w.rand.IntN(len(w.nodes))]
		if e.node.dead || w.now < max(e.node.deaf, e.node.stopped) {
			e.node, e.allowed, e.denied = nil, 0, 0
			return
		}
		e.node.next++
		e.stream = e.node.next
		e.node.streams[e.stream] = e
		e.reported = w.now
	}
	n, stream := e.node, e.stream
	r := Report{Key: "k", Buckets: []*Bucket{w.bucket()}, Allowed: e.allowed, Denied: e.denied,
		Elapsed: (w.now - e.reported) / second}
	e.allowed, e.denied, e.reported = 0, 0, w.now
	sent := w.now
	w.inOrder(&e.arrives[1], func() {
		w.queue = append(w.queue, message{max(sent+w.plans.delay, w.now), func() { w.read(n, e, stream, r) }})
	})
}

// read has a node read a report, as soon as it reads any.
func (w *world) read(n *worldNode, e *worldEnvoy, stream Stream, r Report) {
	switch until := max(n.deaf, n.stopped); {
	case w.now < until:
		w.queue = append(w.queue, message{until, func() { w.read(n, e, stream, r) }})
	case n.streams[stream] == e:
		n.machine.Reported(w.nodeTime(n), stream, []Report{r})
	}
}

// cut ends the stream of an Envoy, at both ends. The node hears of it behind the reports that it has not
// read yet.
func (w *world) cut(e *worldEnvoy) {
	if e.node == nil {
		return
	}
	n, stream := e.node, e.stream
	e.node = nil
	w.later(second/10, func() { w.hear(n, stream) })
}

// hear has a node hear that a stream is over, as soon as it reads anything.
func (w *world) hear(n *worldNode, stream Stream) {
	if until := max(n.deaf, n.stopped); w.now < until {
		w.queue = append(w.queue, message{until, func() { w.hear(n, stream) }})
		return
	}
	if _, open := n.streams[stream]; open {
		delete(n.streams, stream)
		n.machine.Ended(w.nodeTime(n), stream)
	}
}
