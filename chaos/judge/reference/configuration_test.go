//go:build !race

package reference

import (
	"fmt"
	"regexp"
	"strings"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/types/known/structpb"
)

// Root is a configuration file.
type Root struct {
	Domain      string       `yaml:"domain"`
	Descriptors []Descriptor `yaml:"descriptors,omitempty"`
}

// Descriptor is a descriptor of a file, with those nested in it.
type Descriptor struct {
	Key            string     `yaml:"key"`
	Value          string     `yaml:"value,omitempty"`
	RateLimit      *RateLimit `yaml:"rate_limit,omitempty"`
	ShadowMode     bool       `yaml:"shadow_mode,omitempty"`
	QuotaMode      bool       `yaml:"quota_mode,omitempty"`
	ShareThreshold bool       `yaml:"share_threshold,omitempty"`
	DetailedMetric bool       `yaml:"detailed_metric,omitempty"`
	ValueToMetric  bool       `yaml:"value_to_metric,omitempty"`
	// Metadata is what Envoy is told where the limit lets pass.
	Metadata    map[string]any `yaml:"metadata,omitempty"`
	Descriptors []Descriptor   `yaml:"descriptors,omitempty"`
}

// RateLimit is the rate_limit of a descriptor.
type RateLimit struct {
	Unit            string     `yaml:"unit,omitempty"`
	RequestsPerUnit *uint32    `yaml:"requests_per_unit,omitempty"` // nil: 0, and not written
	Unlimited       bool       `yaml:"unlimited,omitempty"`
	Name            string     `yaml:"name,omitempty"`
	Replaces        []Replaces `yaml:"replaces,omitempty"`
}

// Replaces names a limit that another one replaces.
type Replaces struct {
	Name string `yaml:"name"`
}

// Configuration is the files that a server has loaded.
type Configuration struct {
	domains map[string]*node
	tells   map[string]bool // domains with metadata that an import keeps
}

// node is a place in the tree of a domain.
type node struct {
	next     map[string]*node // by key, or key_value
	patterns []pattern        // the values with a *, in the order of the file
	limit    *Limit           // nil: none
	shared   bool             // all values count as the one with the *
	toMetric bool             // value_to_metric
}

type pattern struct {
	text string
	fits *regexp.Regexp
}

// Limit is a limit that applies to a descriptor of a request.
type Limit struct {
	Name      string
	Requests  uint32
	Unit      rlsv3.RateLimitResponse_RateLimit_Unit
	Unlimited bool
	Shadow    bool
	Quota     bool
	Replaces  []string
	Metadata  *structpb.Struct // nil: none
	// detailed and leaf say that it has a detailed_metric, and that no descriptors are below it.
	detailed, leaf bool
}

// Parse loads configuration files. Several may have one domain. It refuses what nobody could mean,
// and not all that envoyproxy/ratelimit refuses.
func Parse(texts ...[]byte) (*Configuration, error) {
	c := &Configuration{domains: map[string]*node{}, tells: map[string]bool{}}
	for _, text := range texts {
		var root Root
		if err := yaml.UnmarshalWithOptions(text, &root, yaml.Strict()); err != nil {
			return nil, fmt.Errorf("read configuration: %w", err)
		}
		if root.Domain == "" {
			return nil, fmt.Errorf("read configuration: no domain")
		}
		if c.domains[root.Domain] == nil {
			c.domains[root.Domain] = &node{}
		}
		if err := c.domains[root.Domain].add(root.Descriptors); err != nil {
			return nil, fmt.Errorf("domain %s: %w", root.Domain, err)
		}
		c.tells[root.Domain] = c.tells[root.Domain] || c.domains[root.Domain].tells()
	}
	return c, nil
}

func (n *node) add(all []Descriptor) error {
	for _, d := range all {
		text := d.Key
		if d.Value != "" {
			text += "_" + d.Value
		}
		if d.Key == "" || n.next[text] != nil {
			return fmt.Errorf("descriptor %q is there twice, or has no key", text)
		}
		below := &node{toMetric: d.ValueToMetric}
		if d.RateLimit != nil {
			limit, err := limitOf(d)
			if err != nil {
				return fmt.Errorf("descriptor %q: %w", text, err)
			}
			below.limit = limit
		}
		if strings.Contains(text, "*") {
			n.patterns = append(n.patterns, pattern{text, compile(text)})
			below.shared = d.ShareThreshold
		}
		if n.next == nil {
			n.next = map[string]*node{}
		}
		n.next[text] = below
		if err := below.add(d.Descriptors); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// tells reports whether a limit here or below has metadata and may let something pass.
func (n *node) tells() bool {
	if l := n.limit; l != nil && l.Metadata != nil && !l.Unlimited && (l.Requests > 0 || l.Shadow) {
		return true
	}
	for _, below := range n.next {
		if below.tells() {
			return true
		}
	}
	return false
}

// compile makes an expression of a text in which each * stands for anything.
func compile(text string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)\A` + strings.ReplaceAll(regexp.QuoteMeta(text), `\*`, `.*`) + `\z`)
}

func limitOf(d Descriptor) (*Limit, error) {
	unit := rlsv3.RateLimitResponse_RateLimit_Unit_value[strings.ToUpper(d.RateLimit.Unit)]
	l := &Limit{Name: d.RateLimit.Name,
		Unit: rlsv3.RateLimitResponse_RateLimit_Unit(unit), Unlimited: d.RateLimit.Unlimited,
		Shadow: d.ShadowMode, Quota: d.QuotaMode, detailed: d.DetailedMetric, leaf: len(d.Descriptors) == 0}
	if len(d.Metadata) > 0 {
		metadata, err := structpb.NewStruct(d.Metadata)
		if err != nil {
			return nil, fmt.Errorf("metadata: %w", err)
		}
		l.Metadata = metadata
	}
	if n := d.RateLimit.RequestsPerUnit; n != nil {
		l.Requests = *n
	}
	for _, r := range d.RateLimit.Replaces {
		l.Replaces = append(l.Replaces, r.Name)
	}
	if l.Unlimited != (unit == 0) {
		return nil, fmt.Errorf("unit %q, unlimited %v", d.RateLimit.Unit, l.Unlimited)
	}
	return l, nil
}

// Match returns the limit that applies to a descriptor of a request, or nil, and the entries by
// which it counts: those of the request, but for values that share a count. forgets says that
// envoyproxy/ratelimit makes the limit anew for a metric of its own, and without its metadata.
func (c *Configuration) Match(domain string, d *ratelimitv3.RateLimitDescriptor) (l *Limit, counted string,
	forgets bool) {
	at, known := c.domains[domain]
	if !known || len(d.GetEntries()) == 0 {
		return nil, "", false
	}
	for _, e := range d.GetEntries() {
		next, by := at.next[e.GetKey()+"_"+e.GetValue()], e.GetValue()
		exact, any := next != nil, false
		for _, p := range at.patterns {
			if next == nil && p.fits.MatchString(e.GetKey()+"_"+e.GetValue()) {
				next = at.next[p.text]
				if next.shared {
					by = strings.TrimPrefix(p.text, e.GetKey()+"_")
				}
			}
		}
		if next == nil {
			next, any = at.next[e.GetKey()], true
		}
		if next == nil {
			return nil, "", false
		}
		forgets = forgets || next.toMetric && !exact && !next.shared && !(any && e.GetValue() == "")
		counted += e.GetKey() + "_" + by + "_"
		at = next
	}
	if l = at.limit; l != nil && l.detailed {
		forgets = l.leaf
	}
	return l, counted, forgets
}
