package nodeconfig

import (
	"bytes"
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
	"github.com/quotad/quotad/region/front/callers"
	"github.com/quotad/quotad/region/memory/store"
)

const (
	// maxConnections is far above what a node can have open. A larger number is a mistake.
	maxConnections = 1_000_000
	// minRemembered and maxRemembered bound what a node remembers. Fewer are too few in practice,
	// more do not fit the memory of a machine.
	minRemembered = 1_000
	maxRemembered = 100_000_000
	// minTimeout and maxTimeout bound redis.timeout. minTimeout leaves time for a round trip to the
	// region's own Redis. maxTimeout is as long as a caller waits.
	minTimeout = 5 * time.Millisecond
	// maxWait is longer than any caller waits.
	maxWait    = time.Minute
	maxTimeout = 2 * time.Second
	// maxDrain is longer than any platform waits before it kills a process.
	maxDrain = 10 * time.Minute
	// maxGossipKeys is the number of keys that package gossip holds at a time.
	maxGossipKeys = 8
	// maxKeyFileBytes bounds a file of gossip keys, with room for blanks and line ends.
	maxKeyFileBytes = 4 << 10
)

// value is the text of a value as it was given, with its place.
type value struct {
	text   string
	folder string // where a relative path starts; empty: the working directory
	place
}

// reader reads the values that one layer gives to a setting.
type reader struct {
	list bool // there may be several values
	read func(all []value) error
}

// one returns a reader of a single value.
func one[T any](into *T, parse func(value) (T, error)) reader {
	return reader{read: func(all []value) error {
		parsed, err := parse(all[0])
		if err == nil {
			*into = parsed
		}
		return err
	}}
}

// each returns a reader of any number of values.
func each[T any](into *[]T, parse func(value) (T, error)) reader {
	return reader{list: true, read: func(all []value) error {
		parsed := make([]T, len(all))
		for i, v := range all {
			var err error
			if parsed[i], err = parse(v); err != nil {
				return err
			}
		}
		*into = parsed
		return nil
	}}
}

var plainName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

func name(v value) (string, error) {
	if !plainName.MatchString(v.text) {
		return "", v.fail(fmt.Sprintf("%.70q is not a valid name", v.text),
			"use 1 to 63 letters, digits, '.', '_' and '-'")
	}
	return v.text, nil
}

// number returns a parser of a whole number in a range. of names what is counted.
func number(of string, least, most int) func(value) (int, error) {
	return func(v value) (int, error) {
		n, err := strconv.Atoi(v.text)
		if err != nil || n < least || n > most {
			return 0, v.fail(fmt.Sprintf("%.40q is no number of %s", v.text, of),
				fmt.Sprintf("write a whole number from %d to %d", least, most))
		}
		return n, nil
	}
}

// part reads a part of a whole.
func part(v value) (float64, error) {
	p, err := strconv.ParseFloat(v.text, 64)
	if err != nil || !(p >= 0 && p <= 1) { // NaN is neither
		return 0, v.fail(fmt.Sprintf("%.40q is not a part of a whole", v.text),
			"write a number from 0 to 1, such as 0.01")
	}
	return p, nil
}

// duration returns a parser of a duration in Go's format, in a range. like is an example.
func duration(least, most time.Duration, like string) func(value) (time.Duration, error) {
	return func(v value) (time.Duration, error) {
		d, err := time.ParseDuration(v.text)
		if err != nil || d < least || d > most {
			return 0, v.fail(fmt.Sprintf("%.40q is not a duration from %s to %s",
				v.text, show.Span(least), show.Span(most)), "write it like "+like)
		}
		return d, nil
	}
}

// choice returns a parser of one of some words. is says what any other text is.
func choice[T any](is, mend string, words map[string]T) func(value) (T, error) {
	return func(v value) (T, error) {
		chosen, known := words[v.text]
		if !known {
			return chosen, v.fail(fmt.Sprintf("%.40q is %s", v.text, is), mend)
		}
		return chosen, nil
	}
}

var (
	boolean = choice("neither true nor false", "write true or false",
		map[string]bool{"true": true, "false": false})
	// switched may also be written as enabled or disabled.
	switched = choice("neither true nor false", "write true or false",
		map[string]bool{"true": true, "enabled": true, "false": false, "disabled": false})
	bootstrap = choice("none of true, false and alone",
		"write true, or alone for the very first node of all",
		map[string]Bootstrap{"false": 0, "true": BootstrapAsks, "alone": BootstrapAlone})
	logLevel = choice("not a log level", "write debug, info, warn or error",
		map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo,
			"warn": slog.LevelWarn, "error": slog.LevelError})
)

// Insecure says which listeners may be reached beyond loopback unprotected.
type Insecure struct{ API, Admin, Peer, Gossip bool }

// insecure reads the names of listeners, or true for all and false for none.
func insecure(v value) (i Insecure, err error) {
	names := map[string]*bool{"api": &i.API, "admin": &i.Admin, "peer": &i.Peer,
		"gossip": &i.Gossip}
	switch v.text {
	case "true":
		return Insecure{true, true, true, true}, nil
	case "false":
		return i, nil
	}
	for word := range strings.SplitSeq(v.text, ",") {
		listener, known := names[strings.TrimSpace(word)]
		if !known {
			return Insecure{}, v.fail(fmt.Sprintf("%.40q is no listener", word),
				"write api, admin, peer or gossip, several with commas, or true for all of them")
		}
		*listener = true
	}
	return i, nil
}

// AuditStderr is the audit setting that writes to the standard error stream.
const AuditStderr = "stderr"

// auditPath reads where the audit log goes.
func auditPath(v value) (string, error) {
	if v.text == AuditStderr {
		return AuditStderr, nil
	}
	return filePath(v)
}

// AuditFile returns where the audit log goes.
func (c *Config) AuditFile() string {
	if c.Audit == "" {
		return filepath.Join(c.DataDir, "audit.jsonl")
	}
	return c.Audit
}

func headers(v value) (callers.Headers, error) {
	style := callers.Headers(v.text)
	if !slices.Contains(callers.HeaderStyles(), style) {
		return "", v.fail(fmt.Sprintf("%.40q is no kind of headers", v.text),
			"write "+show.Listed(callers.HeaderStyles()))
	}
	return style, nil
}

func filePath(v value) (string, error) {
	if v.text == "" {
		return "", v.fail("it is empty", "write a path")
	}
	return v.resolve(v.text), nil
}

// resolve returns a path as seen from the working directory.
func (v value) resolve(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(v.folder, path)
}

// redisURL reads the URL of a Redis. Its errors do not repeat the text, which may hold a password.
func redisURL(v value) (string, error) {
	if _, err := store.ParseURL(v.text); err != nil {
		return "", v.fail("this is not the URL of a Redis: "+errors.Unwrap(err).Error(),
			"write it like redis://127.0.0.1:6379/0, "+
				"redis+sentinel://127.0.0.1:26379,127.0.0.2:26379/mymaster or "+
				"redis+cluster://127.0.0.1:7000,127.0.0.2:7000, with rediss for TLS")
	}
	return v.text, nil
}

// listener reads an IP address and a port. It takes no names but localhost, because it must not
// depend on a resolver whether a listener is on loopback.
func listener(v value) (at netip.AddrPort, err error) {
	const mend = "write an address of this machine and a port, such as 127.0.0.1:8080, " +
		"or :8080 for all addresses"
	host, service, err := net.SplitHostPort(v.text)
	if err != nil {
		return at, v.fail(fmt.Sprintf("%.70q is not host:port", v.text), mend)
	}
	switch host {
	case "":
		host = "::"
	case "localhost":
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return at, v.fail(fmt.Sprintf("%.70q is not an IP address", host), mend)
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return at, v.fail(fmt.Sprintf("%.40q is not a port", service), mend)
	}
	return netip.AddrPortFrom(ip, uint16(port)), nil
}

// address reads an address that other machines can call.
func address(v value) (string, error) {
	const mend = "write a host or address that other nodes can reach, and a port from 1 to 65535"
	host, service, err := net.SplitHostPort(v.text)
	if err != nil || host == "" {
		return "", v.fail(fmt.Sprintf("%.70q is not host:port", v.text), mend)
	}
	if port, err := strconv.ParseUint(service, 10, 16); err != nil || port == 0 {
		return "", v.fail(fmt.Sprintf("%.40q is not a port others can call", service), mend)
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		return "", v.fail(host+" means every address of this machine, "+
			"which is none that others can call", mend)
	}
	return v.text, nil
}

var hostNames = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?$`)

// hostName returns the name of a host in lower case.
func hostName(v value) (string, error) {
	name := strings.ToLower(v.text)
	if !hostNames.MatchString(name) {
		return "", v.fail(fmt.Sprintf("%.70q is no name of a host", v.text),
			"write a name such as quotad.internal, without a port")
	}
	return name, nil
}

// keys returns a reader of gossip keys and files of them. Its errors do not repeat the texts, which
// are secrets.
func keys(into *[][]byte) reader {
	return reader{list: true, read: func(all []value) error {
		var keys [][]byte
		for _, v := range all {
			found, err := keysAt(v)
			if err != nil {
				return err
			}
			keys = append(keys, found...)
		}
		if len(keys) > maxGossipKeys {
			return all[0].fail(
				fmt.Sprintf("there are %d keys, and at most %d can be in force", len(keys),
					maxGossipKeys),
				"drop those that no node encrypts with any more")
		}
		*into = keys
		return nil
	}}
}

// keysAt reads one key, or a file of keys.
func keysAt(v value) ([][]byte, error) {
	texts := []string{v.text}
	if path, ok := strings.CutPrefix(v.text, "file:"); ok {
		b, err := files.Read(v.resolve(path), maxKeyFileBytes)
		if err != nil {
			return nil, v.fail(err.Error(),
				"check the path, and that the user quotad runs as may read the file")
		}
		if texts = strings.Fields(string(b)); len(texts) == 0 {
			return nil, v.fail("the file is empty", "write one key on a line")
		}
	}
	const mend = "make one with: quotad keys gossip"
	keys := make([][]byte, len(texts))
	for i, text := range texts {
		key, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return nil, v.fail("the key is not base64", mend)
		}
		if len(bytes.Trim(key, "\x00")) == 0 && len(key) > 0 {
			return nil, v.fail("the key is all zeros, which anybody can guess",
				mend)
		}
		if !slices.Contains([]int{16, 24, 32}, len(key)) {
			return nil, v.fail(fmt.Sprintf("the key has %d bytes, not 16, 24 or 32", len(key)),
				mend)
		}
		keys[i] = key
	}
	return keys, nil
}
