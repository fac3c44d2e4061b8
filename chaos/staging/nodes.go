package staging

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/quotad/quotad/policy/files"
	"github.com/quotad/quotad/region/peer"
)

// Nodes is what a nodes file says.
type Nodes struct {
	// TLS is what calls to peer ports are made with; nil: plain text.
	TLS     *peer.Files
	Regions []Region // in the order of the file
	// ClocksApart is how far the clocks of the regions' stores and of this machine
	// may be apart, for the judge; 100 ms if the file says nothing.
	ClocksApart time.Duration
}

// Region is one region of a deployment.
type Region struct {
	Name  string
	Nodes []Node // at least one
}

// Node says where a node is; both addresses are host:port.
type Node struct {
	Name string // as in the node file
	Peer string // its peer port, listen.peer
	HTTP string // its HTTP API, listen.http
}

const (
	// maxFileBytes bounds a nodes file, which has a line for each node.
	maxFileBytes = 32 << 10
	// maxNodes bounds the nodes of a file, who are all called at once.
	maxNodes = 250
	// usuallyApart is what clocks are trusted to that NTP keeps, and mostApart is
	// far above: windows shorter than it could not be judged.
	usuallyApart = 100 * time.Millisecond
	mostApart    = 10 * time.Second
)

// ReadNodes reads a nodes file. What is wrong with it is reported at once, each
// with its place, as *strictyaml.Error.
func ReadNodes(path string) (*Nodes, error) {
	src, err := files.Read(path, maxFileBytes)
	if err != nil && !errors.Is(err, files.ErrTooLarge) { // of which ParseNodes tells
		return nil, fmt.Errorf("read nodes file: %w; check the path", err)
	}
	return ParseNodes(path, src)
}

// ParseNodes is ReadNodes of a file's contents; paths in it are relative to the
// file's folder.
func ParseNodes(path string, src []byte) (*Nodes, error) {
	p := &parser{path: path, folder: filepath.Dir(path), nodes: Nodes{ClocksApart: usuallyApart}, at: map[string]string{}}
	if len(src) > maxFileBytes {
		p.fail(nil, "", "the file is larger than 32 KiB", "check the path: a nodes file has a line for each node")
	} else if root := p.parse(src); root != nil {
		p.file(root)
	}
	if err := p.err(); err != nil {
		return nil, err
	}
	return &p.nodes, nil
}

// callable says whether an address can be called: a host and a port from 1 on.
func callable(address string) bool {
	host, service, err := net.SplitHostPort(address)
	if err != nil || host == "" {
		return false
	}
	port, err := strconv.ParseUint(service, 10, 16)
	return err == nil && port > 0
}
