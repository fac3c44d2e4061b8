package store

import (
	"context"
	"errors"
	"os"

	"github.com/redis/go-redis/v9"
)

// Late says whether an error is that a server did not answer in time: it may be busy, or not be there any more. One that
// refuses or ends a connection is not late.
func Late(err error) bool {
	return Unreached(err) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) ||
		errors.Is(err, redis.ErrPoolTimeout))
}
