package gossip

// Recoverer is called for panics of this package. A nil one recovers too.
type Recoverer func(place string, was any)

// recover ends a panic of the function that defers it. It must be deferred directly, not called by
// a deferred function.
func (r Recoverer) recover() {
	if was := recover(); was != nil && r != nil {
		r("gossip", was)
	}
}
