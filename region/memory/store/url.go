package store

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

// Address is where a region's Redis is, and how to log in.
type Address struct {
	kind           kind
	secure         bool     // TLS
	servers        []string // host:port of the server, the Sentinels or some nodes of the Cluster
	master         string   // Sentinel only: the name by which the Sentinels know the master
	database       int
	login          login
	sentinelsLogin login
}

type login struct{ user, password string }

// kind is how the server that holds a shard is found.
type kind int

const (
	standalone kind = iota // there is only one server
	sentinel               // the Sentinels know it
	cluster                // every node of the Cluster knows it
)

var schemes = map[string]kind{"redis": standalone, "redis+sentinel": sentinel,
	"redis+cluster": cluster}

// shards returns the shards of a store at this address.
func (a Address) shards() Shards {
	if a.kind == cluster {
		return Divided(len(clusterTags))
	}
	return Shards{Whole}
}

// String returns the servers, without user and password.
func (a Address) String() string {
	name := strings.Join(a.servers, ",")
	if a.kind == sentinel {
		name += "/" + a.master
	}
	return name
}

// Encrypted reports whether the connections use TLS.
func (a Address) Encrypted() bool { return a.secure }

const urlForms = "write it like redis://127.0.0.1:6379/0, redis+sentinel://127.0.0.1:26379,127.0.0.2:26379/mymaster?db=0 or redis+cluster://127.0.0.1:7000,127.0.0.2:7000, with rediss in place of redis for TLS"

// ParseURL reads a redis.url, which has one of these forms:
//
//	redis://[user:password@]host:port[/database]
//	redis+sentinel://[user:password@]host:port,.../master[?options]
//	redis+cluster://[user:password@]host:port,...
//
// The options are db=0, sentinel_user=.. and sentinel_password=.., joined by &. The same forms with
// rediss in place of redis use TLS. User and password are those of the Redis servers. An error says
// how to write the URL and never repeats a password.
func ParseURL(raw string) (Address, error) {
	a, err := parseURL(raw)
	if err != nil {
		return Address{}, fmt.Errorf("redis url %q: %w; %s", withoutUser(raw), err, urlForms)
	}
	return a, nil
}

func parseURL(raw string) (Address, error) {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return Address{}, errors.New("has no scheme")
	}
	plain := strings.Replace(scheme, "rediss", "redis", 1)
	kind, known := schemes[plain]
	if !known {
		return Address{}, errors.New("its scheme is not known")
	}
	a := Address{kind: kind, secure: plain != scheme}
	u, err := url.Parse("redis://" + withOneHost(rest))
	if err != nil {
		return Address{}, urlFault(raw, err)
	}
	a.login.user = u.User.Username()
	a.login.password, _ = u.User.Password()
	if a.servers, err = hosts(rest, kind); err != nil {
		return Address{}, err
	}
	if a.kind == standalone && len(a.servers) > 1 {
		return Address{}, errors.New(
			"names several servers, which is for redis+sentinel and redis+cluster")
	}
	return a, errors.Join(a.readPath(strings.Trim(u.Path, "/")), a.readQuery(u))
}

// authority returns where the list of servers begins and ends in a URL without its scheme. It
// leaves out user, password and path.
func authority(rest string) (begin, end int) {
	end = strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	return strings.LastIndexByte(rest[:end], '@') + 1, end
}

// withOneHost replaces the list of servers by one host, because no URL parser accepts a list.
func withOneHost(rest string) string {
	begin, end := authority(rest)
	return rest[:begin] + "host" + rest[end:]
}

// hosts reads the list of servers. Its errors quote none of it: in a URL cut at the wrong place, a
// part of the list may be the password.
func hosts(rest string, kind kind) ([]string, error) {
	begin, end := authority(rest)
	var all []string
	for i, server := range strings.Split(rest[begin:end], ",") {
		if port := server[strings.LastIndexByte(server, ']')+1:]; !strings.Contains(port, ":") {
			server += ":" + usualPorts[kind]
		}
		host, port, err := net.SplitHostPort(server)
		n, bad := strconv.ParseUint(port, 10, 16)
		if err != nil || bad != nil || host == "" || n == 0 {
			return nil, fmt.Errorf("server %d is not host:port", i+1)
		}
		all = append(all, server)
	}
	return all, nil
}

var usualPorts = map[kind]string{standalone: "6379", sentinel: "26379", cluster: "6379"}

// readPath reads what follows the servers: the database, or the name of the master.
func (a *Address) readPath(path string) error {
	switch {
	case a.kind == sentinel && path == "":
		return errors.New("does not say behind the Sentinels by which name they know the master")
	case a.kind == sentinel:
		a.master = path
	case a.kind == cluster && path != "":
		return errors.New("names a database, of which a Cluster has only one")
	case path != "":
		return a.readDatabase(path)
	}
	return nil
}

func (a *Address) readDatabase(text string) error {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return errors.New("the database is not a number")
	}
	a.database = int(n)
	return nil
}

// readQuery reads the settings for Sentinels; other URLs have none.
func (a *Address) readQuery(u *url.URL) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("what stands behind the ? does not parse; write special characters as %XX")
	}
	for name, values := range query {
		switch {
		case a.kind != sentinel || len(values) != 1:
			return fmt.Errorf("%.30q is not a setting of this URL, or is given twice", name)
		case name == "db":
			err = a.readDatabase(values[0])
		case name == "sentinel_user":
			a.sentinelsLogin.user = values[0]
		case name == "sentinel_password":
			a.sentinelsLogin.password = values[0]
		default:
			err = fmt.Errorf("%.30q is not a setting of this URL: there are db, sentinel_user and sentinel_password", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// withoutUser returns a URL without anything that may be a user, a password or a part of one. The
// URL need not parse.
func withoutUser(raw string) string {
	if !strings.ContainsAny(raw, "@?") {
		return raw
	}
	scheme, _, ok := strings.Cut(raw, "://")
	if _, known := schemes[strings.Replace(scheme, "rediss", "redis", 1)]; !ok || !known {
		scheme = "..."
	}
	return scheme + "://..."
}

// urlFault returns why a URL does not parse. The parser's own error may quote a part of the
// password.
func urlFault(raw string, err error) error {
	var parse *url.Error
	if strings.Contains(raw, "@") || !errors.As(err, &parse) {
		return errors.New("does not parse; in user and password write special characters as %XX")
	}
	return parse.Err
}

// AddressOf returns the address of a server that has no URL, with the name that errors and the
// status show.
func AddressOf(server string) Address { return Address{servers: []string{server}} }
