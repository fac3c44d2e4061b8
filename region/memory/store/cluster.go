package store

import (
	"context"

	"github.com/redis/go-redis/v9"
)

// nodes are the servers of a Redis Cluster. Only the client's map of the slots is used. The
// client's own pipelines send commands again after a network error, which would charge twice.
type nodes struct {
	client  *redis.ClusterClient
	lookout lookout
}

func newNodes(a Address, base *redis.Options) *nodes {
	n := &nodes{client: redis.NewClusterClient(&redis.ClusterOptions{Addrs: a.servers,
		Username: base.Username, Password: base.Password, TLSConfig: base.TLSConfig,
		MaxRetries: base.MaxRetries, MaxRedirects: -1,
		ContextTimeoutEnabled: base.ContextTimeoutEnabled,
		DialTimeout:           base.DialTimeout, ReadTimeout: base.ReadTimeout,
		WriteTimeout:  base.WriteTimeout,
		DialerRetries: base.DialerRetries, DisableIdentity: base.DisableIdentity,
		MaintNotificationsConfig: base.MaintNotificationsConfig})}
	n.lookout = lookout{timeout: searchTimeouts * base.DialTimeout, search: n.search}
	return n
}

// searchTimeouts is how many round-trip timeouts a search for the masters may take, because the
// first servers that it asks may be dead.
const searchTimeouts = 4

func (n *nodes) master(ctx context.Context, shard Shard) (*redis.Client, error) {
	return n.client.MasterForKey(ctx, TokenKey(shard))
}

func (n *nodes) refresh() <-chan struct{} { return n.lookout.begin() }

// search makes the client read the slots, which it does before it goes through the masters. Nothing
// is asked of the masters themselves.
func (n *nodes) search(ctx context.Context) {
	_ = n.client.ForEachMaster(ctx, func(context.Context, *redis.Client) error { return nil })
}

func (n *nodes) Close() error {
	n.lookout.close()
	return n.client.Close()
}
