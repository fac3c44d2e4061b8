//go:build !race

package reference

import (
	"fmt"

	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// dynamic returns the dynamic metadata of an answer: what was asked, and the metadata of the limits
// whose descriptors pass.
func (s *Server) dynamic(r *rlsv3.RateLimitRequest, all []*asked,
	statuses []*rlsv3.RateLimitResponse_DescriptorStatus) *structpb.Struct {
	descriptors, merged := []any{}, map[string]any{}
	for i, d := range r.GetDescriptors() {
		entries := []any{}
		for _, e := range d.GetEntries() {
			entries = append(entries, fmt.Sprintf("%s=%s", e.GetKey(), e.GetValue()))
		}
		descriptor := map[string]any{"entries": entries}
		if d.GetHitsAddend() != nil {
			descriptor["hitsAddend"] = d.GetHitsAddend().GetValue()
		}
		descriptors = append(descriptors, descriptor)
		l := all[i].limit
		if l == nil || statuses[i].Code != rlsv3.RateLimitResponse_OK || all[i].silent {
			continue
		}
		merge(merged, l.Metadata.AsMap()) // which is new each time
	}
	fields := map[string]any{"domain": r.GetDomain(), "descriptors": descriptors}
	if r.GetHitsAddend() != 0 {
		fields["hitsAddend"] = r.GetHitsAddend()
	}
	if len(merged) > 0 {
		fields["metadata"] = merged
	}
	whole, err := structpb.NewStruct(fields)
	if err != nil {
		panic(err) // of values that the words of Source cannot make
	}
	return whole
}

// merge adds to a mapping what it does not have, also inside mappings that both have.
func merge(into, from map[string]any) {
	for name, value := range from {
		has, both := into[name]
		if !both {
			into[name] = value
			continue
		}
		inner, is := has.(map[string]any)
		more, too := value.(map[string]any)
		if is && too {
			merge(inner, more)
		}
	}
}
