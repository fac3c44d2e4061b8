package staging

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/policy/trust"
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
	mendNode = `write it like {name: n1, http: "https://192.0.2.7:8080", ` +
		`admin: "https://192.0.2.7:8083"}`
	mendRegion = "write it like us-east: [{name: n1, http: \"https://192.0.2.7:8080\", " +
		"admin: \"https://192.0.2.7:8083\"}]"
	mendPath = "give the path of a file, or leave it out"
	mendTLS  = "leave it out, write https:// before http and admin where they have TLS, and beside " +
		"regions ca, and token_file or cert and key"
	mendPeer = "leave it out: admin is where cuts are asked for"
)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

// proofs are the fields of Access, in its order.
var proofs = []string{"token_file", "ca", "cert", "key"}

// nodesFile collects the content of a nodes file.
type nodesFile struct {
	folder string
	usual  Access // of nodes that say nothing else
	nodes  Nodes
	count  int
	at     map[string]string // name of the node, by address
}

// read reads the whole of the file.
func (n *nodesFile) read(root strictyaml.Value) {
	known := append([]string{"regions", "clocks_apart"}, proofs...)
	o, ok := root.Object(mendFile, ofBefore(root, known, "tls", mendTLS))
	if !ok {
		return
	}
	n.usual = n.access(o, Access{})
	if regions, given := o.Required("regions", mendRegion); given {
		n.regions(regions)
	}
	if apart, given := o.Field("clocks_apart"); given {
		n.nodes.ClocksApart = apart.Duration(0, maxApart)
	}
}

// ofBefore reports a field of nodes files of before, when nodes were called at their peer ports. It
// returns the known fields, with that one if it is given.
func ofBefore(v strictyaml.Value, known []string, field, mend string) []string {
	f, given := v.Peek(field)
	if !given {
		return known
	}
	f.Fail("the peer ports of nodes are no longer called", mend)
	return append(known, field)
}

// access reads what is shown to nodes; usual holds where nothing is said.
func (n *nodesFile) access(o strictyaml.Object, usual Access) Access {
	a := usual
	for i, path := range []*string{&a.TokenFile, &a.CA, &a.Cert, &a.Key} {
		f, given := o.Field(proofs[i])
		if !given {
			continue
		}
		text, ok := f.Plain(mendPath)
		if ok && text == "" {
			f.Fail("empty", mendPath)
		}
		if *path = text; !filepath.IsAbs(text) {
			*path = filepath.Join(n.folder, text)
		}
	}
	cert, certs := o.Field("cert")
	if key, keys := o.Field("key"); certs && !keys {
		cert.Fail("no key is given with it", "give key, too")
	} else if keys && !certs {
		key.Fail("no cert is given with it", "give cert, too")
	}
	return a
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
	known := append([]string{"name", "http", "admin"}, proofs...)
	if o, ok := item.Object(mendNode, ofBefore(item, known, "peer", mendPeer)); ok {
		node.Access = n.access(o, n.usual)
		if name, given := required(o, "name"); given {
			node.Name = name
			checkName(o.At("name"), node, r)
		}
		node.HTTP, node.Admin = n.address(o, "http", node.Access), n.address(o, "admin", node.Access)
	}
	if n.count++; n.count == maxNodes+1 {
		item.Fail(fmt.Sprintf("there are more than %d nodes", maxNodes),
			"name those of the regions that the rehearsal is about")
	}
	return node, item.Failures() == before
}

// required reads a field of a node that must be there.
func required(o strictyaml.Object, name string) (text string, ok bool) {
	f, given := o.Required(name, mendNode)
	if !given {
		return "", false
	}
	if text, ok = f.Plain(mendNode); ok && text == "" {
		f.Fail("empty", mendNode)
		return "", false
	}
	return text, ok
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

// address reads an address of a node, and checks that no other node has it and that a token goes
// there unseen.
func (n *nodesFile) address(o strictyaml.Object, name string, a Access) string {
	address, ok := required(o, name)
	if !ok {
		return ""
	}
	v := o.At(name)
	u, ok := callable(address)
	if !ok {
		v.Fail(fmt.Sprintf("%.70q is not host:port", address), "write a host or address that can be "+
			"called from here, and a port from 1 to 65535, with https:// before it if it has TLS")
		return ""
	}
	if other := n.at[u.Host]; other != "" {
		v.Fail(fmt.Sprintf("%.70q is given at %s, too", u.Host, other),
			"give each node and port an address of its own")
		return ""
	}
	n.at[u.Host] = v.Path()
	if a.TokenFile != "" && trust.Readable(u) {
		v.Fail("the token would go to another machine in plain text",
			"write https:// before the address, or leave token_file out")
	}
	return address
}
