package scenario

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/quotad/quotad/chaos/real/process"
)

// redis carries out a step on the Redis of a region.
func (f *Fleet) redis(ctx context.Context, s Step, r *process.Region) (string, error) {
	switch s.Do {
	case "kill-redis":
		return "", r.Redis.End()
	case "start-redis":
		return "", r.Redis.Start(ctx)
	case "flush-redis":
		keys, err := r.Redis.Client.DBSize(ctx).Result()
		if err != nil {
			return "", err
		}
		if keys == 0 {
			return "", fmt.Errorf("the Redis of %s held nothing to empty", r.Name)
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

// failover lets a replica fall behind, promotes it, and leads the nodes to it.
func failover(ctx context.Context, s Step, r *process.Region) (string, error) {
	if said, err := r.Replica.Client.Info(ctx, "replication").Result(); err != nil ||
		!strings.Contains(said, "master_link_status:up") {
		return "", errors.Join(fmt.Errorf(
			"the copy of the Redis of %s is not in touch with it: it says %q", r.Name, said), err)
	}
	if err := r.Replica.Client.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return "", fmt.Errorf("promote the replica of %s: %w", r.Name, err)
	}
	if !Sleep(ctx, s.By) {
		return "", ctx.Err()
	}
	r.Way.Lead(r.Replica.Address)
	return fmt.Sprintf("%s behind", s.By), r.Redis.End()
}
