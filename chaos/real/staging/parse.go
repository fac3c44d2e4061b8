package staging

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/trade/peer"
)

// nodesKind describes nodes files to strictyaml.
var nodesKind = strictyaml.Kind{
	MaxBytes: 32 << 10,
	TooLarge: "check the path: a nodes file has a line for each node",
	Empty:    mendFile,
	TooDeep:  "a nodes file needs only regions, each a list of nodes",
}

const (
	mendFile = "write regions and their nodes"
	mendNode = `write it like {name: n1, peer: "192.0.2.7:8082", http: "192.0.2.7:8080", ` +
		`admin: "192.0.2.7:8083"}`
	mendRegion = `write it like us-east: [{name: n1, peer: "192.0.2.7:8082", http: "192.0.2.7:8080", ` +
		`admin: "192.0.2.7:8083"}]`
	mendTLS = "write it like {cert: certs/operators/alice.pem, key: certs/operators/alice.key, " +
		"ca: certs/ca.pem}"
)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// nodesFile collects the content of a nodes file.
type nodesFile struct {
	folder string
	nodes  Nodes
	count  int
	at     map[string]string // name of the node, by address
}

// read reads the whole of the file.
func (n *nodesFile) read(root strictyaml.Value) {
	o, ok := root.Object(mendFile, []string{"regions", "tls", "clocks_apart"})
	if !ok {
		return
	}
	if regions, given := o.Required("regions", mendRegion); given {
		n.regions(regions)
	}
	if tls, given := o.Field("tls"); given {
		n.tls(tls)
	}
	if apart, given := o.Field("clocks_apart"); given {
		n.nodes.ClocksApart = apart.Duration(0, maxApart)
	}
}

// regions reads the regions and their nodes.
func (n *nodesFile) regions(v strictyaml.Value) {
	entries, ok := v.Entries(mendRegion)
	if ok && len(entries) == 0 {
		v.Fail("empty", mendRegion)
	}
	for _, e := range entries {
		if !nodeName.MatchString(e.Name) {
			e.Key.Fail(fmt.Sprintf("%.70q is no name of a region", e.Name),
				"name regions as the limits document does")
		}
		r := Region{Name: e.Name}
		list, ok := e.Value.List(mendRegion)
		if ok && len(list) == 0 {
			e.Value.Fail("empty", mendRegion)
		}
		for _, item := range list {
			if node, ok := n.node(item, r); ok {
				r.Nodes = append(r.Nodes, node)
			}
		}
		n.nodes.Regions = append(n.nodes.Regions, r)
	}
}

// node reads one node of a region.
func (n *nodesFile) node(item strictyaml.Value, r Region) (node Node, ok bool) {
	before := item.Failures()
	names := []string{"name", "peer", "http", "admin"}
	o, ok := texts(item, mendNode, names, &node.Name, &node.Peer, &node.HTTP, &node.Admin)
	if ok {
		checkName(o.At("name"), node, r)
		n.address(o.At("peer"), node.Peer)
		n.address(o.At("http"), node.HTTP)
		n.address(o.At("admin"), node.Admin)
	}
	if n.count++; n.count == maxNodes+1 {
		item.Fail(fmt.Sprintf("there are more than %d nodes", maxNodes),
			"name those of the regions that the rehearsal is about")
	}
	return node, item.Failures() == before
}

// checkName checks a node's name.
func checkName(v strictyaml.Value, n Node, r Region) {
	same := func(other Node) bool { return other.Name == n.Name }
	switch {
	case !nodeName.MatchString(n.Name):
		v.Fail(fmt.Sprintf("%.70q is no name of a node", n.Name), "name it as its node file does")
	case slices.ContainsFunc(r.Nodes, same):
		v.Fail(fmt.Sprintf("%q is the name of another node of the region, too", n.Name),
			"name each node as its node file does")
	}
}

// address checks the address of a node, and that no other node has it.
func (n *nodesFile) address(v strictyaml.Value, address string) {
	if !callable(address) {
		v.Fail(fmt.Sprintf("%.70q is not host:port", address),
			"write a host or address that can be called from here, and a port from 1 to 65535")
		return
	}
	if other := n.at[address]; other != "" {
		v.Fail(fmt.Sprintf("%.70q is given at %s, too", address, other),
			"give each node and port an address of its own")
		return
	}
	n.at[address] = v.Path()
}

// tls reads the TLS files for calls to peer ports.
func (n *nodesFile) tls(v strictyaml.Value) {
	files := &peer.Files{}
	paths := []*string{&files.Cert, &files.Key, &files.CA}
	if _, ok := texts(v, mendTLS, []string{"cert", "key", "ca"}, paths...); !ok {
		return
	}
	for _, path := range paths {
		if !filepath.IsAbs(*path) {
			*path = filepath.Join(n.folder, *path)
		}
	}
	n.nodes.TLS = files
}

// texts reads a mapping of required fields, whose values are all non-empty plain values.
func texts(
	v strictyaml.Value, mend string, names []string, into ...*string,
) (o strictyaml.Object, ok bool) {
	before := v.Failures()
	if o, ok = v.Object(mend, names); !ok {
		return o, false
	}
	for i, name := range names {
		f, given := o.Required(name, mend)
		if !given {
			continue
		}
		if *into[i], ok = f.Plain(mend); ok && *into[i] == "" {
			f.Fail("empty", mend)
		}
	}
	return o, v.Failures() == before
}
