package tenure

// Stopped says why a node no longer uses its store, although the store would serve it.
type Stopped struct {
	Why  string
	Next string // what an operator can do
}

func (s *Stopped) Error() string { return s.Why + ": " + s.Next }

// Stop makes this node use its store no more: from now on it decides as without a store, and lends
// and borrows nothing. It says nothing and changes nothing in the store. A later call replaces the
// reason.
func (t *Tenure) Stop(why Stopped) {
	t.stopped.Store(&why)
	t.config.Store.Withhold(true)
}

// GoOn makes this node use its store again after Stop.
func (t *Tenure) GoOn() {
	t.stopped.Store(nil)
	t.config.Store.Withhold(false)
	t.Reopen()
}

// Stopped returns why this node no longer uses its store; nil: it uses it.
func (t *Tenure) Stopped() *Stopped { return t.stopped.Load() }
