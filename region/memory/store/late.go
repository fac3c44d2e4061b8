package store

import (
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"
)

// Late reports whether an error means that a server did not answer in time: it may be busy or gone. A
// server that refuses a connection, or closes it, is not late.
func Late(err error) bool {
	return Unreached(err) && (errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout))
}
