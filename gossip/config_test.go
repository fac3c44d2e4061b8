package gossip

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/bubble"
)

func TestStartRefusesNonsense(t *testing.T) {
	for _, tc := range []struct {
		name, want string
		change     func(*Config)
	}{
		{"no name", "name", func(c *Config) { c.Name = "" }},
		{"long name", "name", func(c *Config) { c.Name = strings.Repeat("n", maxName+1) }},
		{"meta", "meta data", func(c *Config) { c.Meta = make([]byte, maxMeta+1) }},
		{"no dial", "Dial", func(c *Config) { c.Dial = nil }},
		{"no sockets", "Packets", func(c *Config) {
			c.Packets.Close()
			c.Streams.Close()
			c.Packets, c.Streams = nil, nil
		}},
		{"no state", "State", func(c *Config) { c.State = nil }},
		{"no address", "advertised", func(c *Config) { c.Advertise = netip.AddrPort{} }},
		{"any address", "advertised",
			func(c *Config) { c.Advertise = netip.MustParseAddrPort("0.0.0.0:7946") }},
		{"no port", "advertised",
			func(c *Config) { c.Advertise = netip.MustParseAddrPort("10.0.0.1:0") }},
		{"key", "key 1 of 1 has 5 bytes", func(c *Config) { c.Keys = keys([]byte("short")) }},
		{"second key", "key 2 of 2 has 0 bytes",
			func(c *Config) { c.Keys = [][]byte{make([]byte, 16), nil} }},
		{"many keys", "9 keys are given, at most 8",
			func(c *Config) { c.Keys = slices.Repeat(keys(make([]byte, 16)), 9) }},
		{"rejoin", "rejoin interval", func(c *Config) { c.RejoinEvery = time.Millisecond }},
		{"seed", `seed "host"`, func(c *Config) { c.Seeds = []string{"host"} }},
		{"seed port", `seed "host:0"`, func(c *Config) { c.Seeds = []string{"host:0"} }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				net := newNetwork(t)
				cfg, n := config(t, net, "a")
				tc.change(&cfg)
				if _, err := Start(cfg); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("error %v, want one about %q", err, tc.want)
				}
				if _, err := n.host.Listen(7946); err != nil {
					t.Errorf("the listener was not closed: %v", err)
				}
				if _, err := n.host.ListenPacket(7946); err != nil {
					t.Errorf("the packet connection was not closed: %v", err)
				}
			})
		})
	}
}
