package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/region/store"
)

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

func readName(name *string, v value) error {
	if !plainName.MatchString(v.text) {
		return v.fail(fmt.Sprintf("%.70q is not a valid name", v.text), "use 1 to 63 letters, digits, '.', '_' and '-'")
	}
	*name = v.text
	return nil
}

// mostNodes is far above any region's need; a number beyond it is a slip.
const mostNodes = 10_000

func readNodes(c *nodeConfig, v value) error {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < 1 || n > mostNodes {
		return v.fail(fmt.Sprintf("%.40q is no number of nodes", v.text), fmt.Sprintf("write how many nodes the region has, 1 to %d", mostNodes))
	}
	c.nodes = n
	return nil
}

// mostRepeats is far above what any caller needs that tries again; each is a request that is served for nothing where
// the caller serves what is repeated.
const mostRepeats = 100

func readRepeats(c *nodeConfig, v value) error {
	n, err := strconv.Atoi(v.text)
	if err != nil || n < 1 || n > mostRepeats {
		return v.fail(fmt.Sprintf("%.40q is no number of repeats", v.text), fmt.Sprintf("write 1 to %d", mostRepeats))
	}
	c.repeats = int64(n)
	return nil
}

func readPath(path *string, v value) error {
	if v.text == "" {
		return v.fail("it is empty", "write a path")
	}
	*path = v.resolve(v.text)
	return nil
}

// resolve returns a path as seen from the working directory.
func (v value) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(v.folder, path)
}

// readRedisURL never repeats the text, which may hold a password.
func readRedisURL(c *nodeConfig, v value) error {
	if _, err := store.ParseURL(v.text); err != nil {
		return v.fail("this is not the URL of a Redis: "+errors.Unwrap(err).Error(),
			"write it like redis://127.0.0.1:6379/0, redis+sentinel://127.0.0.1:26379,127.0.0.2:26379/mymaster or redis+cluster://127.0.0.1:7000,127.0.0.2:7000, with rediss for TLS")
	}
	c.redisURL = v.text
	return nil
}

func readBool(b *bool, v value) error {
	if v.text != "true" && v.text != "false" {
		return v.fail(fmt.Sprintf("%.40q is neither true nor false", v.text), "write true or false")
	}
	*b = v.text == "true"
	return nil
}

// readChaos reads a bool, which may be called what it comes to.
func readChaos(b *bool, v value) error {
	switch v.text {
	case "enabled":
		v.text = "true"
	case "disabled":
		v.text = "false"
	}
	return readBool(b, v)
}

// readListen takes addresses only, no names: whether a listener is on loopback must not depend on a resolver.
func readListen(a *netip.AddrPort, v value) error {
	const mend = "write an address of this machine and a port, such as 127.0.0.1:8080, or :8080 for all addresses"
	host, service, err := net.SplitHostPort(v.text)
	if err != nil {
		return v.fail(fmt.Sprintf("%.70q is not host:port", v.text), mend)
	}
	switch host {
	case "":
		host = "::"
	case "localhost":
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return v.fail(fmt.Sprintf("%.70q is not an IP address", host), mend)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return v.fail(fmt.Sprintf("%.40q is not a port", service), mend)
	}
	*a = netip.AddrPortFrom(ip, uint16(port))
	return nil
}

// mostConnections is far above what a node can have open; a number beyond it is a slip.
const mostConnections = 1_000_000

func readConnections(n *int, v value) error {
	all, err := strconv.Atoi(v.text)
	if err != nil || all < 1 || all > mostConnections {
		return v.fail(fmt.Sprintf("%.40q is no number of connections", v.text), fmt.Sprintf("write how many may be open at a time, 1 to %d", mostConnections))
	}
	*n = all
	return nil
}

// fewestRemembered and mostRemembered bound what a node remembers: fewer are soon too few, more than the memory of a machine.
const (
	fewestRemembered = 1_000
	mostRemembered   = 100_000_000
)

func readRemembered(n *int, v value) error {
	all, err := strconv.Atoi(v.text)
	if err != nil || all < fewestRemembered || all > mostRemembered {
		return v.fail(fmt.Sprintf("%.40q is no number of buckets", v.text), fmt.Sprintf("write %d to %d", fewestRemembered, mostRemembered))
	}
	*n = all
	return nil
}

// readAddress takes what other machines are to call.
func readAddress(address *string, v value) error {
	const mend = "write a host or address that other nodes can reach, and a port from 1 to 65535"
	host, service, err := net.SplitHostPort(v.text)
	if err != nil || host == "" {
		return v.fail(fmt.Sprintf("%.70q is not host:port", v.text), mend)
	}
	if port, err := strconv.ParseUint(service, 10, 16); err != nil || port == 0 {
		return v.fail(fmt.Sprintf("%.40q is not a port others can call", service), mend)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return v.fail(host+" means every address of this machine, which is none that others can call", mend)
	}
	*address = v.text
	return nil
}

func readSeeds(c *nodeConfig, all []value) error {
	seeds := make([]string, len(all))
	for i, v := range all {
		if err := readAddress(&seeds[i], v); err != nil {
			return err
		}
	}
	c.seeds = seeds
	return nil
}

const (
	// mostGossipKeys is what package gossip holds at a time.
	mostGossipKeys = 8
	// mostKeyFileBytes bounds a file of them, with room for blanks and line ends.
	mostKeyFileBytes = 4 << 10
)

// readGossipKeys never repeats the texts, which are secrets.
func readGossipKeys(c *nodeConfig, all []value) error {
	var keys [][]byte
	for _, v := range all {
		texts := []string{v.text}
		if path, ok := strings.CutPrefix(v.text, "file:"); ok {
			b, err := files.Read(v.resolve(path), mostKeyFileBytes)
			if err != nil {
				return v.fail(err.Error(), "check the path, and that the user quotad runs as may read the file")
			}
			if texts = strings.Fields(string(b)); len(texts) == 0 {
				return v.fail("the file is empty", "write one key on a line")
			}
		}
		for _, text := range texts {
			key, err := readKey(v, text)
			if err != nil {
				return err
			}
			keys = append(keys, key)
		}
	}
	if len(keys) > mostGossipKeys {
		return all[0].fail(fmt.Sprintf("there are %d keys, and at most %d can be in force", len(keys), mostGossipKeys), "drop those that no node encrypts with any more")
	}
	c.gossipKeys = keys
	return nil
}

func readKey(v value, text string) ([]byte, error) {
	const mend = "make one with: quotad gossip-key"
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, v.fail("the key is not base64", mend)
	}
	if !slices.Contains([]int{16, 24, 32}, len(key)) {
		return nil, v.fail(fmt.Sprintf("the key has %d bytes, not 16, 24 or 32", len(key)), mend)
	}
	return key, nil
}

func readLogLevel(c *nodeConfig, v value) error {
	levels := map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}
	level, ok := levels[v.text]
	if !ok {
		return v.fail(fmt.Sprintf("%.40q is not a log level", v.text), "write debug, info, warn or error")
	}
	c.logLevel = level
	return nil
}

// The bounds of redis.timeout: a round trip to the region's own Redis fits into the first, and a caller's patience into
// the last.
const (
	shortestTimeout = 5 * time.Millisecond
	longestTimeout  = 2 * time.Second
)

func readRedisTimeout(c *nodeConfig, v value) error {
	d, err := time.ParseDuration(v.text)
	if err != nil || d < shortestTimeout || d > longestTimeout {
		return v.fail(fmt.Sprintf("%.40q is not a duration from %s to %s", v.text, show.Span(shortestTimeout), show.Span(longestTimeout)), "write it like 50ms")
	}
	c.redisTimeout = d
	return nil
}

// longestDrain is longer than any platform waits before it kills.
const longestDrain = 10 * time.Minute

func readDrain(c *nodeConfig, v value) error {
	d, err := time.ParseDuration(v.text)
	if err != nil || d < 0 || d > longestDrain {
		return v.fail(fmt.Sprintf("%.40q is not a duration from 0s to %s", v.text, show.Span(longestDrain)), "write it like 10s")
	}
	c.drain = d
	return nil
}
