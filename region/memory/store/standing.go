package store

import (
	"context"
	"time"

	"github.com/quotad/quotad/quantity"
)

// Standing is what the token of a shard says, beside the clock of the shard's server.
type Standing struct {
	Server     string             // host:port
	Generation uint64             // 0: the shard has no token
	Mark       quantity.StoreTime // the latest time that the shard has shown to anybody; 0: none
	Clock      time.Time          // of the server, when it was asked
}

// Standing returns how each shard stands, in order of the shards. It changes nothing.
func (s *session) Standing(ctx context.Context) ([]Standing, error) {
	found, err := s.look(ctx, "")
	if err != nil {
		return nil, err
	}
	all := make([]Standing, len(found))
	for i, l := range found {
		all[i] = Standing{Server: l.at, Generation: l.Generation, Mark: l.Mark, Clock: s.now().Add(l.apart)}
	}
	return all, nil
}
