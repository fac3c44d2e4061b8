package staging

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	yaml "github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/peer"
)

// parser collects what a nodes file says, and everything that is wrong with it.
type parser struct {
	path, folder string
	nodes        Nodes
	count        int
	at           map[string]string // which node has an address
	failures     int
	errs         []error // the first of them
}

const (
	mendNode   = `write it like {name: n1, peer: "192.0.2.7:8082", http: "192.0.2.7:8080"}`
	mendRegion = `write it like us-east: [{name: n1, peer: "192.0.2.7:8082", http: "192.0.2.7:8080"}]`
	mendYAML   = "check indentation, quotes and brackets on this line and its neighbours"
	// mostErrors bounds what is reported of one file: nobody reads more.
	mostErrors = 50
)

var nodeName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,63}$`)

func (p *parser) fail(at *token.Token, path, problem, mend string) {
	if p.failures++; p.failures > mostErrors {
		return
	}
	pos := strictyaml.Position{File: p.path, Line: 1, Column: 1}
	if at != nil && at.Position != nil {
		pos.Line, pos.Column = at.Position.Line, at.Position.Column
	}
	p.errs = append(p.errs, &strictyaml.Error{Pos: pos, Path: path, Problem: problem, Mend: mend})
}

func (p *parser) err() error {
	if len(p.errs) == 0 {
		return nil
	}
	return fmt.Errorf("the nodes file cannot be used: mend what is listed and try again\n%w", errors.Join(p.errs...))
}

// parse returns the root of the file's one YAML document; nil if there is none.
func (p *parser) parse(src []byte) (root ast.Node) {
	defer func() { // the parser is not ours, and its panic is not what a user should see of a wrong file
		if r := recover(); r != nil {
			p.fail(nil, "", fmt.Sprintf("not valid YAML: the parser failed: %v", r), mendYAML)
			root = nil
		}
	}()
	tokens := lexer.Tokenize(string(src))
	if at := tooDeep(tokens); at != nil {
		p.fail(at, "", "lists and mappings nest too deep here", mendYAML)
		return nil
	}
	tree, err := yaml.Parse(tokens, 0)
	var positioned interface {
		GetMessage() string
		GetToken() *token.Token
	}
	switch {
	case errors.As(err, &positioned):
		p.fail(positioned.GetToken(), "", "not valid YAML: "+strings.Join(strings.Fields(positioned.GetMessage()), " "), mendYAML)
	case err != nil:
		p.fail(nil, "", "not valid YAML: "+strings.Join(strings.Fields(err.Error()), " "), mendYAML)
	case len(tree.Docs) > 1:
		p.fail(tree.Docs[1].Start, "", "a second document starts here", "keep one document in the file")
	case len(tree.Docs) == 0 || tree.Docs[0].Body == nil:
		p.fail(nil, "", "the file is empty", "write regions and their nodes")
	default:
		return tree.Docs[0].Body
	}
	return nil
}

// tooDeep returns where brackets, or marks on one line, open more than a nodes
// file could need: the parser takes long over thousands of them.
func tooDeep(tokens token.Tokens) *token.Token {
	const most = 8
	var brackets, marks, line int
	for _, t := range tokens {
		if t.Position.Line != line {
			line, marks = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			marks++
		}
		if brackets > most || marks > most {
			return t
		}
	}
	return nil
}

// file reads the whole of the file.
func (p *parser) file(root ast.Node) {
	fields := p.fields(root, "", "write regions and their nodes", "regions", "tls", "clocks_apart")
	if regions := fields["regions"]; regions != nil {
		p.regions(regions)
	} else if fields != nil {
		p.fail(start(root), "regions", "is missing", mendRegion)
	}
	if tls := fields["tls"]; tls != nil {
		p.tls(tls)
	}
	if apart := fields["clocks_apart"]; apart != nil {
		const mend = "write it like 100ms, at most 10s"
		text := p.text(apart, start(root), "clocks_apart", mend)
		d, err := time.ParseDuration(text)
		if text != "" && (err != nil || d < 0 || d > mostApart) {
			p.fail(start(apart), "clocks_apart", fmt.Sprintf("%.40q is no length of time", text), mend)
		}
		p.nodes.ClocksApart = d
	}
}

// fields returns the values of a mapping that may have certain fields; nil if it
// is none.
func (p *parser) fields(node ast.Node, path, mend string, known ...string) map[string]ast.Node {
	m, ok := node.(*ast.MappingNode)
	if !ok {
		p.fail(start(node), path, "a mapping is expected here", mend)
		return nil
	}
	found := map[string]ast.Node{}
	for _, kv := range m.Values {
		key := kv.Key.GetToken()
		if !slices.Contains(known, key.Value) {
			p.fail(key, below(path, key.Value), "no such field", "use one of "+strings.Join(known, ", "))
			continue
		}
		found[key.Value] = kv.Value
	}
	return found
}

// regions reads the regions and their nodes.
func (p *parser) regions(node ast.Node) {
	m, ok := node.(*ast.MappingNode)
	if !ok || len(m.Values) == 0 {
		p.fail(start(node), "regions", "a mapping of regions is expected here", mendRegion)
		return
	}
	for _, kv := range m.Values {
		key := kv.Key.GetToken()
		path := below("regions", key.Value)
		if !nodeName.MatchString(key.Value) {
			p.fail(key, "regions", fmt.Sprintf("%.70q is no name of a region", key.Value), "name regions as the limits document does")
		}
		r := Region{Name: key.Value}
		list, ok := kv.Value.(*ast.SequenceNode)
		if !ok || len(list.Values) == 0 {
			p.fail(key, path, "a list of nodes is expected here", mendRegion)
			continue
		}
		for i, item := range list.Values {
			if n, ok := p.node(item, fmt.Sprintf("%s[%d]", path, i), r); ok {
				r.Nodes = append(r.Nodes, n)
			}
		}
		p.nodes.Regions = append(p.nodes.Regions, r)
	}
}

// node reads one node of a region.
func (p *parser) node(item ast.Node, path string, r Region) (n Node, ok bool) {
	before := p.failures
	fields := p.fields(item, path, mendNode, "name", "peer", "http")
	if fields == nil {
		return n, false
	}
	for _, f := range []struct {
		name string
		into *string
	}{{"name", &n.Name}, {"peer", &n.Peer}, {"http", &n.HTTP}} {
		*f.into = p.text(fields[f.name], start(item), below(path, f.name), mendNode)
	}
	if p.failures == before {
		p.named(fields["name"].GetToken(), below(path, "name"), n, r)
		p.address(fields["peer"].GetToken(), below(path, "peer"), n.Peer)
		p.address(fields["http"].GetToken(), below(path, "http"), n.HTTP)
	}
	if p.count++; p.count == maxNodes+1 {
		p.fail(start(item), path, fmt.Sprintf("there are more than %d nodes", maxNodes), "name those of the regions that the rehearsal is about")
	}
	return n, p.failures == before
}

// named checks a node's name.
func (p *parser) named(at *token.Token, path string, n Node, r Region) {
	switch {
	case !nodeName.MatchString(n.Name):
		p.fail(at, path, fmt.Sprintf("%.70q is no name of a node", n.Name), "name it as its node file does")
	case slices.ContainsFunc(r.Nodes, func(other Node) bool { return other.Name == n.Name }):
		p.fail(at, path, fmt.Sprintf("%q is the name of another node of the region, too", n.Name), "name each node as its node file does")
	}
}

// address checks where a node is to be called, and that nobody else is there.
func (p *parser) address(at *token.Token, path, address string) {
	if !callable(address) {
		p.fail(at, path, fmt.Sprintf("%.70q is not host:port", address), "write a host or address that can be called from here, and a port from 1 to 65535")
		return
	}
	if other := p.at[address]; other != "" {
		p.fail(at, path, fmt.Sprintf("%.70q is given at %s, too", address, other), "give each node and port an address of its own")
		return
	}
	p.at[address] = path
}

// tls reads what calls to peer ports are made with.
func (p *parser) tls(node ast.Node) {
	const mend = "write it like {cert: certs/operators/alice.pem, key: certs/operators/alice.key, ca: certs/ca.pem}"
	fields := p.fields(node, "tls", mend, "cert", "key", "ca")
	if fields == nil {
		return
	}
	var files peer.Files
	for _, f := range []struct {
		name string
		into *string
	}{{"cert", &files.Cert}, {"key", &files.Key}, {"ca", &files.CA}} {
		if *f.into = p.text(fields[f.name], start(node), below("tls", f.name), mend); !filepath.IsAbs(*f.into) {
			*f.into = filepath.Join(p.folder, *f.into)
		}
	}
	p.nodes.TLS = &files
}

// text reads a plain value, which must be there.
func (p *parser) text(node ast.Node, around *token.Token, path, mend string) string {
	switch v := node.(type) {
	case nil:
		p.fail(around, path, "is missing", mend)
	case *ast.StringNode:
		if v.Value != "" {
			return v.Value
		}
		p.fail(v.GetToken(), path, "it is empty", mend)
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode: // a node may be called 1
		return v.GetToken().Value
	default:
		p.fail(start(node), path, "a plain value is expected here", mend)
	}
	return ""
}

// start returns the first token of a node: a block mapping names its first colon.
func start(node ast.Node) *token.Token {
	if m, ok := node.(*ast.MappingNode); ok && !m.IsFlowStyle && len(m.Values) > 0 {
		return m.Values[0].Key.GetToken()
	}
	return node.GetToken()
}

func below(path, name string) string {
	if path == "" {
		return name
	}
	return fmt.Sprintf("%s.%.70s", path, name)
}
