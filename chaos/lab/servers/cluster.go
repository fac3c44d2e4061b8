package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Slots is how many slots a Redis Cluster has.
const Slots = 16384

// StartCluster starts a Redis Cluster of masters without replicas, each a redis-server on a free
// loopback port, divides the slots evenly among them and waits until all of them serve. The servers
// are named in the URL in the order of their slots.
func StartCluster(ctx context.Context, masters int) (_ *Server, err error) {
	var all []*Server
	end := func() error {
		var errs []error
		for _, s := range all {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			_ = end()
		}
	}()
	var addrs []string
	for range masters {
		bus, err := FreePort()
		if err != nil {
			return nil, err
		}
		s, err := StartProcessWith(ctx, "--cluster-enabled", "yes", "--cluster-port",
			strconv.Itoa(bus), "--cluster-node-timeout", "2000")
		if err != nil {
			return nil, err
		}
		all, addrs = append(all, s), append(addrs, strings.TrimPrefix(s.URL, "redis://"))
		if err := joinCluster(ctx, s.URL, all[0].URL, bus, len(all)-1, masters); err != nil {
			return nil, err
		}
	}
	for _, s := range all {
		if err := clusterServes(ctx, s.URL, masters); err != nil {
			return nil, err
		}
	}
	return &Server{URL: "redis+cluster://" + strings.Join(addrs, ","), close: end}, nil
}

// joinCluster gives the n-th of so many servers its slots, and introduces it to the first server
// with MEET. at and first are the URLs of the two. bus is the port of this server's cluster bus,
// which MEET needs.
func joinCluster(ctx context.Context, at, first string, bus, n, of int) error {
	own, err := plainClient(at)
	if err != nil {
		return err
	}
	defer own.Close()
	if err := own.ClusterAddSlotsRange(ctx, n*Slots/of, (n+1)*Slots/of-1).Err(); err != nil ||
		at == first {
		return err
	}
	known, err := plainClient(first)
	if err != nil {
		return err
	}
	defer known.Close()
	host, port, err := net.SplitHostPort(own.Options().Addr)
	if err != nil {
		return err
	}
	return known.Do(ctx, "CLUSTER", "MEET", host, port, bus).Err()
}

// clusterServes waits until a server of a Cluster knows all masters and serves.
func clusterServes(ctx context.Context, at string, masters int) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client, err := plainClient(at)
	if err != nil {
		return err
	}
	defer client.Close()
	for {
		info, err := client.ClusterInfo(ctx).Result()
		if err == nil && strings.Contains(info, "cluster_state:ok") && strings.Contains(info,
			fmt.Sprintf("cluster_size:%d\r", masters)) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the Redis Cluster at %s does not come up: %w\n%s", at,
				errors.Join(err, ctx.Err()), info)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func plainClient(url string) (*redis.Client, error) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		return nil, err
	}
	opts.DisableIdentity = true
	return redis.NewClient(opts), nil
}
