package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	descriptors "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimit "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/quotad/quotad/chaos/real/process"
)

// Compare is a server of envoy.service.ratelimit.v3.RateLimitService that runs already and is
// measured beside the others.
type Compare struct {
	Address string // host:port; empty: there is none
	PIDs    []int  // of its processes, and of those of its Redis
	// Domain is the domain of all requests.
	Domain string
	// Descriptor is the descriptor of a decision: its entries, as NAME=VALUE,..., where keyMark in
	// a value stands for the key.
	Descriptor string
}

const (
	// compared is the name of the subject.
	compared = "compared"
	// keyMark stands for the key in the value of an entry.
	keyMark = "{key}"
	// maxEntries bounds the entries of a descriptor, and maxEntryLength the bytes of each and of
	// the domain.
	maxEntries     = 8
	maxEntryLength = 256
)

// checkCompare checks what is said about a compared server.
func (b *Bench) checkCompare(all *problems) {
	c := &b.Compare
	if c.Address == "" {
		for _, flag := range []string{"compare-pid", "compare-domain", "compare-descriptor"} {
			if b.Asked(flag) {
				all.add("--%s tells of a server to compare: add --compare, or leave it out", flag)
			}
		}
		return
	}
	if !onLoopback(c.Address) {
		all.add("--compare %q: give the address of a server on this machine's loopback, "+
			"such as 127.0.0.1:8081", c.Address)
	}
	if b.HTTP {
		all.add("--compare: an Envoy rate limit service is called over gRPC: leave out --http, " +
			"or --compare")
	}
	all.processes("compare-pid", c.PIDs)
	if c.Domain == "" || len(c.Domain) > maxEntryLength || !utf8.ValidString(c.Domain) {
		all.add("--compare-domain %q: give a name of 1 to %d bytes", c.Domain, maxEntryLength)
	}
	if _, err := c.entries(); err != nil {
		all.add("--compare-descriptor %q: %w", c.Descriptor, err)
	}
}

// entry is one of a descriptor's.
type entry struct{ name, value string }

// entries parses the descriptor.
func (c *Compare) entries() (all []entry, err error) {
	const example = "give entries such as key={key}, or path=/buy,account={key}"
	if !utf8.ValidString(c.Descriptor) {
		return nil, errors.New("is not UTF-8; " + example)
	}
	for text := range strings.SplitSeq(c.Descriptor, ",") {
		name, value, found := strings.Cut(text, "=")
		if !found || name == "" || value == "" || len(text) > maxEntryLength {
			return nil, fmt.Errorf("%q is no entry NAME=VALUE of up to %d bytes; %s", text,
				maxEntryLength, example)
		}
		all = append(all, entry{name, value})
	}
	if len(all) > maxEntries {
		return nil, fmt.Errorf("has %d entries; give at most %d", len(all), maxEntries)
	}
	if !strings.Contains(c.Descriptor, keyMark) {
		return nil, fmt.Errorf("has no %s, so all keys would be one; %s", keyMark, example)
	}
	return all, nil
}

// envoy makes the requests of an Envoy rate limit service.
type envoy struct {
	domain  string
	entries []entry
	limits  int // descriptors of a decision: each is of a bucket of its own
}

// startCompare connects to the compared server, and asks it for a decision.
func (b *Bench) startCompare(ctx context.Context, scope process.Scope, s *subjects) error {
	entries, err := b.Compare.entries()
	if err != nil {
		return err
	}
	one := &subject{name: compared, envoy: &envoy{b.Compare.Domain, entries, b.Limits}}
	one.server, one.redis = split(b.Compare.PIDs)
	one.hasRedis = len(one.redis) > 0
	s.ours = append(s.ours, b.Compare.PIDs...)
	if one.conns, err = b.connect(scope, b.Compare.Address); err != nil {
		return err
	}
	s.namesLimit, err = one.envoy.sample(ctx, ratelimit.NewRateLimitServiceClient(one.conns[0]))
	if err != nil {
		return fmt.Errorf("ask the server at %s for a decision: %w", b.Compare.Address, err)
	}
	s.all = append(s.all, one)
	return nil
}

// rls is the name of the subject that is the node, asked as an Envoy rate limit service.
const rls = "rls"

// addRLS adds the node once more, as an Envoy rate limit service. One descriptor meets all limits.
func (b *Bench) addRLS(ctx context.Context, scope process.Scope, s *subjects, node *subject) error {
	one := *node
	one.name, one.rounds = rls, nil
	one.envoy = &envoy{domain, []entry{{descriptor, keyMark}}, 1}
	var err error
	if one.conns, err = b.connect(scope, node.conns[0].Target()[len("passthrough:///"):]); err != nil {
		return err
	}
	if _, err = one.envoy.sample(ctx, ratelimit.NewRateLimitServiceClient(one.conns[0])); err != nil {
		return fmt.Errorf("ask the node as an Envoy rate limit service: %w", err)
	}
	s.all = append(s.all, &one)
	return nil
}

// sample asks for one decision. It returns whether the answer tells a limit: by convention, it does
// not if none applies.
func (e *envoy) sample(ctx context.Context,
	client ratelimit.RateLimitServiceClient) (namesLimit bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	got, err := client.ShouldRateLimit(ctx, e.request([]int{0}))
	if err != nil {
		return false, fmt.Errorf("%w; check that --compare is the gRPC address of an Envoy rate "+
			"limit service", err)
	}
	denied, err := e.denials(got, 1)
	if err == nil && denied > 0 {
		err = errors.New("it denied the first request: give it a limit that all requests fit into")
	}
	for _, s := range got.GetStatuses() {
		namesLimit = namesLimit || s.GetCurrentLimit() != nil
	}
	return namesLimit, err
}

// prepare makes the request of a call.
func (e *envoy) prepare(client ratelimit.RateLimitServiceClient) prepare {
	return func(keys []int) call {
		m := e.request(keys)
		return func(ctx context.Context) (int64, error) {
			got, err := client.ShouldRateLimit(ctx, m)
			if err != nil {
				return 0, err
			}
			return e.denials(got, len(keys))
		}
	}
}

// request returns a request with a descriptor for each limit of each key.
func (e *envoy) request(keys []int) *ratelimit.RateLimitRequest {
	m := &ratelimit.RateLimitRequest{Domain: e.domain,
		Descriptors: make([]*descriptors.RateLimitDescriptor, 0, len(keys)*e.limits)}
	for _, key := range keys {
		for n := range e.limits {
			m.Descriptors = append(m.Descriptors, e.descriptor(bucketName(keyName(key), n)))
		}
	}
	return m
}

func (e *envoy) descriptor(key string) *descriptors.RateLimitDescriptor {
	d := &descriptors.RateLimitDescriptor{
		Entries: make([]*descriptors.RateLimitDescriptor_Entry, len(e.entries))}
	for i, its := range e.entries {
		d.Entries[i] = &descriptors.RateLimitDescriptor_Entry{Key: its.name,
			Value: strings.ReplaceAll(its.value, keyMark, key)}
	}
	return d
}

// denials counts the decisions about some keys that do not admit their request. A decision is over
// its limits if one of its descriptors is. If the answer does not say of which descriptor, it
// denies all.
func (e *envoy) denials(got *ratelimit.RateLimitResponse, keys int) (denied int64, err error) {
	switch code := got.GetOverallCode(); code {
	case ratelimit.RateLimitResponse_OK:
		return 0, nil
	case ratelimit.RateLimitResponse_OVER_LIMIT:
	default:
		return 0, fmt.Errorf("it answered the overall code %s, which is no decision", code)
	}
	if len(got.Statuses) == keys*e.limits {
		for its := range slices.Chunk(got.Statuses, e.limits) {
			if slices.ContainsFunc(its, isOver) {
				denied++
			}
		}
	}
	if denied == 0 {
		denied = int64(keys)
	}
	return denied, nil
}

func isOver(s *ratelimit.RateLimitResponse_DescriptorStatus) bool {
	return s.GetCode() == ratelimit.RateLimitResponse_OVER_LIMIT
}

// note says that a compared server seems to decide nothing.
func (c *Compare) note() string {
	return fmt.Sprintf("the answers of %s tell no limit: if none applies to domain %s and "+
		"descriptor %s there, it decides nothing", c.Address, plain(c.Domain),
		plain(c.Descriptor))
}
