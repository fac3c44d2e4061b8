//go:build envoy

package envoy

import "testing"

// TestCosts: Envoy ignores hits_addend in the rate_limits of a virtual host or route, and charges
// one. In those of the filter's own configuration for the route it does what it says.
func TestCosts(t *testing.T) {
	const limits = "[{actions: [{masked_remote_address: {v6_prefix_mask_len: 64}}], hits_addend: {number: 5}}]"
	for name, c := range map[string]struct {
		edit edit
		cost int
	}{
		"in the virtual host": {edit{"rate_limits: *lists", "rate_limits: " + limits}, 1},
		"for the filter": {edit{"rate_limits: *lists", `typed_per_filter_config:
                        envoy.filters.http.ratelimit:
                          "@type": type.googleapis.com/envoy.extensions.filters.http.ratelimit.v3.RateLimitPerRoute
                          rate_limits: ` + limits}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			node := startNodes(t, "limits.yaml", 1).Nodes[0]
			p := startEnvoy(t, "envoy.yaml", startApp(t), []string{node.GRPC}, c.edit)
			if a := p.client(t, "127.0.0.2").get(t, "GET", "/"); !a.decided() {
				t.Errorf("%v", a)
			}
			if n := used(t, node, "address", "masked_remote_address", "127.0.0.2/32"); n != c.cost {
				t.Errorf("a request of 5 was charged as %d, want %d", n, c.cost)
			}
		})
	}
}
