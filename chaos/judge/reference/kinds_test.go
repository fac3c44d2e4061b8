//go:build reference && !race

package reference

import (
	"fmt"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	rlsv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/proto"
)

// follows is the kind of differences that an earlier difference explains: the count is not known.
const follows = "follows from an earlier difference of the same count"

// differences returns the kinds of all differences between an answer and the one that is wanted: at
// most one of each status, and those of the overall code and the headers only if the statuses are
// the same.
func differences(t *turn, unsure map[string]bool) (kinds []string) {
	if len(t.got.Statuses) != len(t.want.Statuses) {
		return []string{"number of statuses"}
	}
	doubtful := false
	for i, a := range t.all {
		kind := differs(t.got.Statuses[i], t.want.Statuses[i])
		doubtful = doubtful || a.limit != nil && unsure[a.count]
		switch {
		case kind == "":
		case a.limit != nil && unsure[a.count]:
			kinds = append(kinds, follows)
		default:
			kinds = append(kinds, kind+": "+feature(t, i))
		}
	}
	if len(kinds) > 0 || doubtful {
		return kinds
	}
	if t.got.OverallCode != t.want.OverallCode {
		kinds = append(kinds, "overall code alone: "+features(t))
	}
	if got, want := told(t.got.ResponseHeadersToAdd), told(t.want.ResponseHeadersToAdd); got != want {
		kinds = append(kinds, "headers: "+headersDiffer(got, want)+": "+features(t))
	}
	if !proto.Equal(t.got.DynamicMetadata, t.want.DynamicMetadata) {
		kinds = append(kinds, "dynamic metadata: "+features(t))
	}
	return kinds
}

// differs returns in what a status differs first, or nothing.
func differs(got, want *rlsv3.RateLimitResponse_DescriptorStatus) string {
	g, w := got.GetCurrentLimit(), want.GetCurrentLimit()
	reset, until := got.GetDurationUntilReset().AsDuration(), want.GetDurationUntilReset().AsDuration()
	switch {
	case got.Code != want.Code:
		return fmt.Sprintf("%v in place of %v", got.Code, want.Code)
	case g == nil && w != nil:
		return "no limit is told"
	case g != nil && w == nil:
		return "a limit is told where none is"
	case g.GetRequestsPerUnit() != w.GetRequestsPerUnit() || g.GetUnit() != w.GetUnit() ||
		g.GetUnitMultiplier() != nil:
		return "another limit"
	case g.GetName() != w.GetName() && w.GetName() == "":
		return "a name is told where none is given"
	case g.GetName() != w.GetName():
		return "another name"
	case got.LimitRemaining != want.LimitRemaining:
		return "what is left"
	case reset == until:
		return ""
	case reset == 0:
		return "reset is 0"
	case (reset + time.Second - 1).Truncate(time.Second) == until:
		return "reset is not in whole seconds"
	}
	return "reset"
}

// feature returns what is particular about a descriptor.
func feature(t *turn, place int) string {
	a, d := t.all[place], t.request.Descriptors[place]
	var all []string
	add := func(is bool, what string) {
		if is {
			all = append(all, what)
		}
	}
	add(a.unlimited, "unlimited")
	add(a.limit == nil && !a.unlimited, "no limit, or a replaced one")
	add(a.limit != nil && a.limit.Requests == 0, "limit of 0")
	add(d.GetIsNegativeHits(), "negative hits")
	add(a.addend == 0 && !d.GetIsNegativeHits(), "cost 0")
	add(a.addend > 0 && besideQuestion(t, place), "beside one of cost 0")
	add(a.limit != nil && a.limit.Shadow, "shadow")
	add(a.limit != nil && a.limit.Quota, "quota")
	if len(all) == 0 {
		return "a limit of some cost"
	}
	return strings.Join(all, ", ")
}

// besideQuestion reports whether another descriptor of the request asks.
func besideQuestion(t *turn, place int) bool {
	for i, a := range t.all {
		if i != place && a.addend == 0 {
			return true
		}
	}
	return false
}

// features returns what is particular about a request.
func features(t *turn) string {
	seen := map[string]bool{}
	for i, a := range t.all {
		if a.limit == nil {
			continue
		}
		seen["cost 0"] = seen["cost 0"] || a.addend == 0
		seen["limit of 0"] = seen["limit of 0"] || a.limit.Requests == 0
		seen["quota"] = seen["quota"] || a.limit.Quota
		seen["shadow"] = seen["shadow"] || a.limit.Shadow
		seen["over"] = seen["over"] || t.want.Statuses[i].Code == rlsv3.RateLimitResponse_OVER_LIMIT
	}
	var all []string
	for _, what := range []string{"cost 0", "limit of 0", "quota", "shadow", "over"} {
		if seen[what] {
			all = append(all, what)
		}
	}
	if len(all) == 0 {
		return "plain"
	}
	return strings.Join(all, ", ")
}

// told returns the headers that both servers have, as limit/remaining/reset.
func told(all []*corev3.HeaderValue) string {
	values := map[string]string{}
	for _, h := range all {
		values[strings.ToLower(h.Key)] = h.Value
	}
	if len(values) == 0 {
		return ""
	}
	return values["x-ratelimit-limit"] + "/" + values["x-ratelimit-remaining"] + "/" + values["x-ratelimit-reset"]
}

// headersDiffer returns which of the headers differ.
func headersDiffer(got, want string) string {
	if got == "" || want == "" {
		return fmt.Sprintf("there are some: %v, wanted: %v", got != "", want != "")
	}
	var all []string
	g, w := strings.Split(got, "/"), strings.Split(want, "/")
	for i, name := range []string{"limit", "remaining", "reset"} {
		if g[i] != w[i] {
			all = append(all, name)
		}
	}
	return strings.Join(all, " and ")
}
