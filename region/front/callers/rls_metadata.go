package callers

import (
	"maps"
	"sync"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	envoy "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/region/decide/admit"
)

// sentMetadata holds the metadata of one document as Envoy is sent it, made once for all answers. Safe
// for concurrent use.
type sentMetadata struct {
	mu   sync.Mutex
	of   *policy.Document
	made map[*policy.Metadata]*structpb.Struct // which never change
}

// all returns the metadata of a document.
func (s *sentMetadata) all(of *policy.Document) map[*policy.Metadata]*structpb.Struct {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == of {
		return s.made
	}
	s.of, s.made = of, map[*policy.Metadata]*structpb.Struct{}
	add := func(m *policy.Metadata) {
		// An error would be about a value that no Metadata has.
		if made, err := structpb.NewStruct(m.Fields()); err == nil && m != nil {
			s.made[m] = made
		}
	}
	for i := range of.Limits {
		add(of.Limits[i].Metadata)
	}
	for i := range of.Exempt {
		add(of.Exempt[i].Metadata)
	}
	return s.made
}

// meets records of whose metadata Envoy is told if a descriptor passes.
func (a *rlsReply) meets(place int, d admit.Decision, met admit.Met) {
	if a.told == nil {
		return
	}
	if met.Exempt != nil && met.Exempt.Metadata != nil {
		a.told[place] = append(a.told[place], met.Exempt.Metadata)
	}
	for _, i := range met.Limits {
		if i < len(d.Limits) && d.Limits[i].Metadata != nil {
			a.told[place] = append(a.told[place], d.Limits[i].Metadata)
		}
	}
}

// dynamic returns the dynamic metadata of an answer, in the form of envoyproxy/ratelimit: what was
// asked, and the metadata of what the descriptors met that pass, also where others are denied. made is
// the metadata of the document that decided: a limit of an older one tells nothing.
func (a *rlsReply) dynamic(m *envoy.RateLimitRequest, made map[*policy.Metadata]*structpb.Struct) *structpb.Struct {
	asked := make([]*structpb.Value, len(m.GetDescriptors()))
	for i, d := range m.GetDescriptors() {
		asked[i] = structpb.NewStructValue(askedOf(d))
	}
	fields := map[string]*structpb.Value{"domain": structpb.NewStringValue(m.GetDomain()), "descriptors": listOf(asked)}
	if n := m.GetHitsAddend(); n != 0 {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(n))
	}
	var all *structpb.Struct
	for i, s := range a.response.Statuses {
		if s.GetCode() != passed {
			continue
		}
		for _, its := range a.told[i] {
			all = merged(all, made[its])
		}
	}
	if all != nil {
		fields["metadata"] = structpb.NewStructValue(all)
	}
	return &structpb.Struct{Fields: fields}
}

// askedOf returns a descriptor of a request.
func askedOf(d *ratelimit.RateLimitDescriptor) *structpb.Struct {
	entries := make([]*structpb.Value, len(d.GetEntries()))
	for i, e := range d.GetEntries() {
		entries[i] = structpb.NewStringValue(e.GetKey() + "=" + e.GetValue())
	}
	fields := map[string]*structpb.Value{"entries": listOf(entries)}
	if l := d.GetLimit(); l != nil {
		fields["limit"] = structpb.NewStringValue(l.String())
	}
	if n := d.GetHitsAddend(); n != nil {
		fields["hitsAddend"] = structpb.NewNumberValue(float64(n.GetValue()))
	}
	return &structpb.Struct{Fields: fields}
}

func listOf(all []*structpb.Value) *structpb.Value {
	return structpb.NewListValue(&structpb.ListValue{Values: all})
}

// merged returns the fields of both, either of which may be nil. Where both have a field, that of the
// first counts; two mappings are merged. It changes neither.
func merged(first, second *structpb.Struct) *structpb.Struct {
	switch {
	case first == nil:
		return second
	case second == nil || first == second:
		return first
	}
	all := maps.Clone(first.GetFields())
	for name, its := range second.GetFields() {
		has, both := all[name]
		switch {
		case !both:
			all[name] = its
		case has.GetStructValue() != nil && its.GetStructValue() != nil:
			all[name] = structpb.NewStructValue(merged(has.GetStructValue(), its.GetStructValue()))
		}
	}
	return &structpb.Struct{Fields: all}
}
