package gossip

// Recoverer hears of panics of this package. A nil one recovers all the same.
type Recoverer func(place string, was any)

// recover ends a panic of the function that defers it. It must be deferred itself, not called by
// what is deferred.
func (r Recoverer) recover() {
	if was := recover(); was != nil && r != nil {
		r("gossip", was)
	}
}
