package staging

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/policy/trust"
)

// Nodes is the content of a nodes file.
type Nodes struct {
	Regions []Region // in the order of the file
	// ClocksApart is how far the clocks of the regions' stores and of this machine may be apart, as
	// the judge assumes; 100 ms if the file says nothing.
	ClocksApart time.Duration
}

// Region is one region of a deployment.
type Region struct {
	Name  string
	Nodes []Node // at least one
}

// Node is the name and the addresses of a node. All addresses are host:port, or https://host:port
// with TLS.
type Node struct {
	Name   string // as in the node file
	HTTP   string // its HTTP API, listen.http
	Admin  string // its admin listener, listen.admin
	Access Access
}

// Access is what a node is shown of who calls, and whom its certificate may be of.
type Access struct {
	TokenFile string // path; empty: no token is sent
	trust.Files
}

const (
	// maxNodes bounds the nodes of a file, because all are called at once.
	maxNodes = 250
	// usuallyApart is a difference that clocks kept by NTP stay within. maxApart is far above it:
	// windows shorter than maxApart could not be judged.
	usuallyApart = 100 * time.Millisecond
	maxApart     = 10 * time.Second
)

// ReadNodes reads a nodes file. It reports all errors of the file at once, each with its position,
// as *strictyaml.Error.
func ReadNodes(path string) (*Nodes, error) {
	src, err := files.Read(path, nodesKind.MaxBytes)
	// ParseNodes reports a file that is too large
	if err != nil && !errors.Is(err, files.ErrTooLarge) {
		return nil, fmt.Errorf("read nodes file: %w; check the path", err)
	}
	return ParseNodes(path, src)
}

// ParseNodes parses the content of a nodes file. Paths in it are relative to the file's folder.
func ParseNodes(path string, src []byte) (*Nodes, error) {
	n := &nodesFile{folder: filepath.Dir(path), nodes: Nodes{ClocksApart: usuallyApart},
		at: map[string]string{}}
	root, err := strictyaml.Read(path, src, nodesKind)
	if err == nil {
		n.read(root)
		err = root.Err()
	}
	if err != nil {
		return nil, fmt.Errorf(
			"the nodes file cannot be used: mend what is listed and try again\n%w", err)
	}
	return &n.nodes, nil
}

// callable returns the URL of an address, and whether it is a host and a port from 1 on, with or
// without https:// before them.
func callable(address string) (*url.URL, bool) {
	u := &url.URL{Scheme: "http", Host: address}
	if at, found := strings.CutPrefix(address, "https://"); found {
		u = &url.URL{Scheme: "https", Host: at}
	}
	host, service, err := net.SplitHostPort(u.Host)
	if err != nil || host == "" {
		return nil, false
	}
	port, err := strconv.ParseUint(service, 10, 16)
	return u, err == nil && port > 0
}
