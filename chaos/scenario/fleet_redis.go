package scenario

import (
	"context"
	"fmt"

	"github.com/quotad/quotad/chaos/process"
)

// redis does a step about the Redis of a region.
func (f *Fleet) redis(ctx context.Context, s Step, r *process.Region) (string, error) {
	switch s.Do {
	case "kill-redis":
		r.Redis.Kill()
		return "", nil
	case "start-redis":
		return "", r.Redis.Start(ctx)
	case "flush-redis":
		keys, err := r.Redis.Client.DBSize(ctx).Result()
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("%d keys are gone", keys), r.Redis.Client.FlushAll(ctx).Err()
	case "pause-redis":
		return "", r.Redis.Pause()
	case "continue-redis":
		return "", r.Redis.Resume()
	default:
		return failover(ctx, s, r)
	}
}

// failover lets a replica fall behind, promotes it, and leads the nodes there.
func failover(ctx context.Context, s Step, r *process.Region) (string, error) {
	if err := r.Replica.Client.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return "", fmt.Errorf("promote the replica of %s: %w", r.Name, err)
	}
	if !sleep(ctx, s.By) {
		return "", ctx.Err()
	}
	r.Way.Lead(r.Replica.Address)
	r.Redis.Kill()
	return fmt.Sprintf("%s behind", s.By), nil
}
