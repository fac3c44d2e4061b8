package algorithms

import "github.com/quotad/quotad/quantity"

// DeleteToken deletes the token, as DEL of its key does. The buckets stay, in a store that nobody
// has opened.
func (w *Twin) DeleteToken() {
	*w = Twin{calls: w.calls, buckets: w.buckets, decided: w.decided, settled: w.settled}
}

// Forget deletes what is remembered under a Once or a receipt, as DEL or the key's expiry does.
// Without it a twin remembers for ever.
func (w *Twin) Forget(key string) {
	delete(w.decided, key)
	delete(w.settled, key)
}

// Watch is Inspect for somebody who is no node of the region: the store does not remember that it
// answered.
func (w *Twin) Watch(t quantity.StoreTime, c Inspect) Inspected {
	before, known := w.answered[c.Node]
	i := w.Inspect(t, c)
	if known {
		w.answered[c.Node] = before
	} else {
		delete(w.answered, c.Node)
	}
	return i
}
