package scenario

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/play/envoy"
	"github.com/quotad/quotad/chaos/real/process"
)

// proxy is an Envoy in front of a region's nodes.
type proxy struct {
	name     string
	client   *envoy.Client
	sequence atomic.Uint64
}

// envoyMark begins the names of Envoys in a record. No node has such a name.
const envoyMark = "envoy/"

// byEnvoy reports whether an Envoy decided by itself.
func byEnvoy(a oracle.Answer) bool { return strings.HasPrefix(a.Node, envoyMark) }

// startEnvoys starts the Envoys of all regions. They end with the scope.
func (f *Fleet) startEnvoys(scope process.Scope) error {
	f.envoys = map[string][]*proxy{}
	for _, r := range f.scenario.Regions {
		for i := range r.Envoys {
			conn, err := dialAll(f.fleet.Region(r.Name).Nodes)
			if err != nil {
				return err
			}
			p := &proxy{name: fmt.Sprint(envoyMark, i+1),
				client: envoy.Dial(envoy.Config{Domain: f.scenario.domainOfEnvoys(r.Name)}, conn)}
			scope.Cleanup(func() {
				p.client.Close()
				_ = conn.Close()
			})
			f.envoys[r.Name] = append(f.envoys[r.Name], p)
		}
	}
	return nil
}

// domainOfEnvoys returns the domain of a region's Envoys: that of the first load on them. An
// Envoy's filter has one.
func (s *Scenario) domainOfEnvoys(region string) string {
	for _, l := range s.Load {
		if l.Region == region && len(l.Envoys) > 0 {
			return s.limit(l.Limit).Domain
		}
	}
	return ""
}

// dialAll returns a connection to whichever of some nodes is there. A stream goes to one of them,
// each in turn.
func dialAll(nodes []*process.Node) (*grpc.ClientConn, error) {
	builder := manual.NewBuilderWithScheme("nodes")
	state := resolver.State{}
	for _, n := range nodes {
		state.Addresses = append(state.Addresses, resolver.Address{Addr: n.GRPC})
	}
	builder.InitialState(state)
	return grpc.NewClient("nodes:///all", grpc.WithResolvers(builder),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig": [{"round_robin": {}}]}`),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: time.Second,
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6,
				MaxDelay: time.Second}}))
}

// ask has the Envoy decide a request. It judges by no store, so the time is this machine's, by
// which all stores go.
func (p *proxy) ask(region string, q Question) oracle.Answer {
	allowed := p.client.Request(q.Descriptors)
	now := time.Now()
	a := oracle.Answer{Bucket: q.Bucket, Region: region, Node: p.name, Sequence: p.sequence.Add(1),
		Cost: q.Cost, Outcome: oracle.Denied, Sent: now, Seen: now, At: now.UnixMicro(),
		Cell: q.Limit.CellOf(now.UnixMicro())}
	if allowed {
		a.Outcome = oracle.Admitted
	}
	return a
}

// cutEnvoys breaks the streams of Envoys.
func (f *Fleet) cutEnvoys(s Step) (outcome string) {
	cut := 0
	for i, p := range f.envoys[s.Region] {
		if s.Envoy == 0 || s.Envoy == i+1 {
			p.client.Cut()
			cut++
		}
	}
	return counted(cut, "stream")
}

// told checks that every Envoy was assigned something, and understood all that it was told.
func (r *Record) told() Result {
	out := Result{Text: "every Envoy is assigned a part, and understands what it is told",
		Want: counted(len(r.Facts.Envoys), "Envoy")}
	understood, assignments := 0, 0
	var wrong []string
	for _, e := range r.Facts.Envoys {
		assignments += e.Assigned
		switch {
		case len(e.Faults) > 0:
			wrong = append(wrong, fmt.Sprintf("%s/envoy %d: %s", e.Region, e.Envoy, e.Faults[0]))
		case e.Assigned == 0:
			wrong = append(wrong, fmt.Sprintf("%s/envoy %d: assigned nothing", e.Region, e.Envoy))
		default:
			understood++
		}
	}
	out.Got = fmt.Sprintf("%d, %d assignments", understood, assignments)
	if len(wrong) > 0 {
		out.Got += ": " + strings.Join(wrong, "; ")
	}
	out.OK = len(wrong) == 0
	return out
}
