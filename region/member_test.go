package region

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/chaos/lab/documents"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/gossip"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
)

// MetaOf returns what a node of that name would say about itself.
func MetaOf(t testing.TB, region, node, address string) []byte {
	t.Helper()
	b, err := proto.Marshal(&hintv1.Node{Region: region, Node: node, Peer: address})
	suite.Must(t, err)
	return b
}

// TestMembersOfAKnownFormOnly: a member's name must be REGION/NODE with a region of the document.
// It must say the same name about itself, and no address or one that can be called.
func TestMembersOfAKnownFormOnly(t *testing.T) {
	n := Unstarted(t, 1, documents.Parse(t, 1, HereAndThere, "name: a, limit: 10, window: 1s"))
	long := strings.Repeat("x", 64)
	for name, c := range map[string]struct {
		name string
		meta []byte
		ok   bool
	}{
		"a node": {"there/n1", MetaOf(t, "there", "n1", "10.0.0.1:8082"), true},
		"a mate by name": {"here/n2", MetaOf(t, "here", "n2", "node.example:8082"),
			true},
		"without an address": {"there/n1", MetaOf(t, "there", "n1", ""), true},
		"of IPv6":            {"there/n1", MetaOf(t, "there", "n1", "[::1]:8082"), true},
		"of another region": {"elsewhere/n1", MetaOf(t, "elsewhere", "n1", "10.0.0.1:8082"),
			false},
		"without a region": {"n1", MetaOf(t, "", "n1", "10.0.0.1:8082"), false},
		"of two slashes": {"there/n1/n2", MetaOf(t, "there", "n1/n2", "10.0.0.1:8082"),
			false},
		"with escape codes": {"there/\x1b[31mn1", MetaOf(t, "there", "\x1b[31mn1",
			"10.0.0.1:8082"), false},
		"of a long name": {"there/" + long, MetaOf(t, "there", long, "10.0.0.1:8082"),
			false},
		"that says another name": {"there/n1", MetaOf(t, "there", "n2", "10.0.0.1:8082"), false},
		"of nonsense":            {"there/n1", []byte{0xff}, false},
		"that says nothing":      {"there/n1", nil, false},
		"without a port":         {"there/n1", MetaOf(t, "there", "n1", "10.0.0.1"), false},
		"of port 0":              {"there/n1", MetaOf(t, "there", "n1", "10.0.0.1:0"), false},
		"of a long address": {"there/n1",
			MetaOf(t, "there", "n1", strings.Repeat("a", maxAddressBytes)+":8082"), false},
		"with escapes in its place": {"there/n1", MetaOf(t, "there", "n1", "\x1b[31m:8082"), false},
	} {
		if _, err := n.admit(gossip.Member{Name: c.name, Meta: c.meta}); (err == nil) != c.ok {
			t.Errorf("a member %s: %v", name, err)
		}
	}
}

// FuzzMember: whatever a member's name and its data are, it is refused or has the form that nodes
// have.
func FuzzMember(f *testing.F) {
	f.Add("there/n1", MetaOf(f, "there", "n1", "10.0.0.1:8082"))
	f.Add("here/\x1b[31m", MetaOf(f, "here", "x", "[::1]:1"))
	f.Add("there/n1/n2", []byte{0x0a, 0xff})
	n := Unstarted(f, 1, documents.Parse(f, 1, HereAndThere, "name: a, limit: 10, window: 1s"))
	f.Fuzz(func(t *testing.T, name string, meta []byte) {
		region, err := n.admit(gossip.Member{Name: name, Meta: meta})
		if err != nil {
			return
		}
		is, err := memberOf(gossip.Member{Name: name, Meta: meta})
		if err != nil || is.Region != region || is.String() != name || len(name) > 2*63+1 ||
			region != "here" && region != "there" {
			t.Errorf("%q was admitted to %q as %+v, %v", name, region, is, err)
		}
		if strings.ContainsFunc(name+is.address,
			func(r rune) bool { return r <= ' ' || r >= 0x7f }) ||
			len(is.address) > maxAddressBytes {
			t.Errorf("%q at %q was admitted", name, is.address)
		}
	})
}
