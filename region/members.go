package region

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/gossip"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/region/peer"
)

const (
	// fewestMembers and membersPerNode bound the members of one region that gossip takes in:
	// four times as many as this region has nodes, and at least 64. More are refused and
	// counted; see gossip.Config.MaxGroup.
	fewestMembers  = 64
	membersPerNode = 4
	// maxAddressBytes is that of the longest host name with a port.
	maxAddressBytes = 253 + 1 + 5
)

// maxMembers is how many members one region may have.
func (c Config) maxMembers() int { return max(fewestMembers, membersPerNode*c.Nodes) }

// member is what a node tells all others of itself.
type member struct {
	peer.Identity
	address string // host:port of its PeerService; empty: it has none
}

// memberOf reads what a member says of itself. It fails if that is not of the form in which nodes
// say it, or does not go with its name.
func memberOf(m gossip.Member) (member, error) {
	region, node, _ := strings.Cut(m.Name, "/")
	is := member{Identity: peer.Identity{Region: region, Node: node}}
	if _, err := is.URI(); err != nil {
		return member{}, errors.New("its name is not REGION/NODE")
	}
	var meta hintv1.Node
	if err := proto.Unmarshal(m.Meta, &meta); err != nil {
		return member{}, errors.New("what it says of itself cannot be read")
	}
	if meta.GetRegion() != region || meta.GetNode() != node {
		return member{}, errors.New("it says another name of itself than the one it has")
	}
	is.address = meta.GetPeer()
	if is.address != "" && !callable(is.address) {
		return member{}, fmt.Errorf("%.80q is no host and port that it could be called at", is.address)
	}
	return is, nil
}

// callable says whether text is host:port.
func callable(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || len(text) > maxAddressBytes {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	printable := !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	return err == nil && n > 0 && printable
}

// admit says whether a node may be a member, and of which region it is: only nodes of regions of
// the document may.
func (n *Node) admit(m gossip.Member) (region string, err error) {
	is, err := memberOf(m)
	if err != nil {
		return "", err
	}
	if !n.inDocument(is.Region) {
		return "", fmt.Errorf("the limits document in force has no region %s", is.Region)
	}
	return is.Region, nil
}

func (n *Node) inDocument(region string) bool {
	_, known := n.tenure.Rules().Document.RegionIndex(region)
	return known
}

// membersChanged keeps the addresses of other nodes, by region. A region of which nobody is seen
// keeps those it had: gossip may be cut where calls are not. An address that answered lately stays
// for a while, too: anybody who can gossip can say that a node is gone, and that others are there
// in its place.
func (n *Node) membersChanged(members []gossip.Member) {
	defer n.panics.Catch("gossip")
	nodes := map[string][]string{}
	for _, m := range members {
		is, err := memberOf(m)
		if err != nil || is.address == "" || is.Region == n.config.Region && is.Node == n.config.Node {
			continue
		}
		nodes[is.Region] = append(nodes[is.Region], is.address)
	}
	for region, all := range nodes {
		n.peers.SetNodes(region, slices.Concat(n.peers.Lately(region), all))
	}
	n.countMates(len(nodes[n.config.Region]))
}

// countMates warns where the region has more nodes than the configuration says: after a loss of the
// store nobody would wait for what the others used. It says so again when that is over and comes
// back.
func (n *Node) countMates(mates int) {
	tooMany := mates+1 > max(n.config.Nodes, 1)
	already := n.crowded.Swap(tooMany)
	if tooMany && !already {
		n.log.Warn("gossip sees more nodes of this region than its configuration says: what they used "+
			"may be had again after a loss of the store; set nodes to what the region has, on all of them",
			"nodes", n.config.Nodes, "seen", mates+1)
	}
}
