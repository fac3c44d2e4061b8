package region

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/quotad/quotad/gossip"
	hintv1 "github.com/quotad/quotad/proto/hint/v1"
	"github.com/quotad/quotad/region/trade/peer"
)

const (
	// fewestMembers and membersPerNode bound the members of one region that gossip accepts: four
	// times the number of this region's nodes, and at least 64. Further members are refused and
	// counted. See gossip.Config.MaxGroup.
	fewestMembers  = 64
	membersPerNode = 4
	// maxAddressBytes is the length of the longest host name with a port, in bytes.
	maxAddressBytes = 253 + 1 + 5
)

// maxMembers returns how many members one region may have.
func (c Config) maxMembers() int { return max(fewestMembers, membersPerNode*c.Nodes) }

// member is what a node tells the other nodes about itself.
type member struct {
	peer.Identity
	address string // host:port of its PeerService; empty: it has none
	// store is what the member says of its region's store. Its Use is Unsure if it has none.
	store peer.StoreAnswer
	life  uint64 // tells this start of the member from others; 0: it does not say
}

// memberOf reads what a member says about itself. It fails if that is not in the form that nodes
// use, or does not match the member's name.
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
		return member{}, fmt.Errorf("%.80q is no host and port that it could be called at",
			is.address)
	}
	if len(meta.GetStore().GetId()) > peer.MaxStoreID {
		return member{}, errors.New("it names a store by an id that no store has")
	}
	is.store, is.life = storeOf(m.Name, meta.GetStore()), meta.GetLife()
	return is, nil
}

// namesakePatience bounds the wait for the answer of another process with this node's name.
const namesakePatience = time.Second

// aloneWithItsName fails if another process runs under this node's name. Both would have a journal,
// a part of the entitlement without the store, and what Envoys are assigned, each as if it was
// alone.
func (n *Node) aloneWithItsName(ctx context.Context) error {
	m, met := n.gossip.Namesake()
	is, err := memberOf(m)
	if !met || err != nil || is.address == "" || is.address == n.config.PeerAdvertise {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, namesakePatience)
	defer cancel()
	if !n.peers.Runs(ctx, is.Identity, is.address) {
		return nil
	}
	return fmt.Errorf("another process runs as node %s, with its peer port at %s: give this node a name of its own, or end that process first",
		is.Identity, is.address)
}

// callable reports whether text is host:port.
func callable(text string) bool {
	host, port, err := net.SplitHostPort(text)
	if err != nil || host == "" || len(text) > maxAddressBytes {
		return false
	}
	n, err := strconv.ParseUint(port, 10, 16)
	printable := !strings.ContainsFunc(host, func(r rune) bool { return r <= ' ' || r >= 0x7f })
	return err == nil && n > 0 && printable
}

// admit returns the region of a node that may be a member. It fails if the node's region is not in
// the document.
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
	return region == n.config.Region || slices.Contains(n.tenure.Rules().Peers, region)
}

// membersChanged keeps the addresses of other nodes, by region. If no node of a region is seen, the
// region keeps its addresses, because gossip may be cut while calls are not. An address that
// answered lately is also kept for a while, because everybody who can gossip can claim that a node
// is gone and that others took its place.
func (n *Node) membersChanged(members []gossip.Member) {
	defer n.panics.Catch("gossip")
	nodes := map[string][]string{}
	for _, m := range members {
		is, err := memberOf(m)
		if err != nil || is.address == "" || is.Region == n.config.Region &&
			is.Node == n.config.Node {
			continue
		}
		nodes[is.Region] = append(nodes[is.Region], is.address)
	}
	for region, all := range nodes {
		n.peers.SetNodes(region, slices.Concat(n.peers.Lately(region), all))
	}
	n.mates.saw(len(nodes[n.config.Region])+1, n.config.Nodes, n.log)
	n.second.Look()
}
