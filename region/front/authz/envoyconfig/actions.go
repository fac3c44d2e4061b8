package envoyconfig

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/front/authz"
)

// action is one way in which Envoy makes an entry of a request.
type action struct {
	name  string
	value string // of the entry, if it is always the same
	// headers are the conditions of an action that can have some. Such an action has a value.
	headers []matcher
	text    string // of an action without a value
}

func (a action) is(other action) bool {
	return a.name == other.name && a.value == other.value && a.text == other.text &&
		slices.Equal(a.headers, other.headers)
}

// carries reports whether the action can have conditions.
func (a action) carries() bool { return a.value != "" }

// Envoy names the entry of an address itself.
const (
	maskedAddress = "masked_remote_address"
	wholeAddress  = "remote_address"
)

// actionsOf returns the actions for a descriptor. Of several at most one fits a request.
func actionsOf(d authz.Descriptor) (all []action) {
	switch d.Source {
	case authz.Fixed:
		return []action{{name: d.Name, value: d.Of}}
	case authz.Method:
		return []action{{name: d.Name, text: requestHeader(d.Name, ":method")}}
	case authz.ClientAddress:
		return []action{{name: d.Name, text: addressAction(d)}}
	}
	if d.Known == nil {
		all = append(all, action{name: d.Name, text: requestHeader(d.Name, d.Of)})
	}
	var others []matcher
	for _, k := range d.Known {
		all = append(all, action{name: d.Name, value: k.Descriptor, headers: []matcher{
			matcher(fmt.Sprintf("{name: %s, string_match: {exact: %s}}", quoted(d.Of), quoted(k.Value)))}})
		others = append(others, matcher(fmt.Sprintf(
			"{name: %s, string_match: {exact: %s}, invert_match: true, treat_missing_header_as_empty: true}",
			quoted(d.Of), quoted(k.Value))))
	}
	if d.Known == nil {
		others = []matcher{matcher(fmt.Sprintf("{name: %s, present_match: true, invert_match: true}", quoted(d.Of)))}
	}
	if d.Default != "" {
		all = append(all, action{name: d.Name, value: d.Default, headers: others})
	}
	return all
}

func requestHeader(name, header string) string {
	return fmt.Sprintf("request_headers: {descriptor_key: %s, header_name: %s}", quoted(name), quoted(header))
}

func addressAction(d authz.Descriptor) string {
	if d.Name == wholeAddress {
		return "remote_address: {}"
	}
	var bits []string
	if d.V4 != 32 {
		bits = append(bits, fmt.Sprintf("v4_prefix_mask_len: %d", d.V4))
	}
	if d.V6 != 128 {
		bits = append(bits, fmt.Sprintf("v6_prefix_mask_len: %d", d.V6))
	}
	return "masked_remote_address: {" + strings.Join(bits, ", ") + "}"
}

// plain is what needs no quotes in YAML, wherever it stands.
var plain = regexp.MustCompile(`^[A-Za-z_/][A-Za-z0-9._/-]*$`)

// reserved are plain, and no texts.
var reserved = regexp.MustCompile(`(?i)^(y|n|yes|no|on|off|true|false|null)$`)

// quoted returns a text as a value of YAML, in which a text of JSON is one.
func quoted(text string) string {
	if plain.MatchString(text) && !reserved.MatchString(text) {
		return text
	}
	asJSON, _ := json.Marshal(text) // of a string it never fails
	return string(asJSON)
}

// sendable says which descriptors Envoy can send.
const sendable = "Envoy can send " + maskedAddress + " or " + wholeAddress +
	" for {client_address: true}, and any other name for {header: NAME}, {method: true} and {value: TEXT}"

// checkDescriptors returns what of a rule's descriptors Envoy cannot send.
func checkDescriptors(r authz.Rule) (wrong strictyaml.Errors) {
	for _, d := range r.Made {
		problem, mend := checkDescriptor(d)
		if problem != "" {
			wrong = append(wrong, &strictyaml.Error{Pos: d.Pos, Path: d.Field, Problem: problem, Mend: mend})
		}
	}
	if r.Costs {
		wrong = append(wrong, &strictyaml.Error{Pos: r.Pos, Path: r.Field + ".cost",
			Problem: "a cost in a route's rate_limits is ignored by Envoy without a word",
			Mend: "remove it here, and write hits_addend by hand, in RateLimitPerRoute of typed_per_filter_config; " +
				"such requests cost 1 until then"})
	}
	return wrong
}

func checkDescriptor(d authz.Descriptor) (problem, mend string) {
	address := d.Name == maskedAddress || d.Name == wholeAddress
	switch d.Source {
	case authz.ClientAddress:
		switch {
		case !address:
			return "Envoy cannot send an address under this name, for its action fixes the name", "call it " +
				maskedAddress + ", here and in the limits: " + sendable
		case d.Name == wholeAddress && (d.V4 != 32 || d.V6 != 128):
			return "Envoy cannot send a part of an address under this name", "call it " + maskedAddress +
				", here and in the limits, or remove v4_bits and v6_bits"
		}
		return "", ""
	case authz.Fixed, authz.Method, authz.Header:
	default:
		return "Envoy cannot send a " + d.Source + " as quotad makes it of a request", "use another source: " + sendable
	}
	if d.Source == authz.Fixed && d.Of == "" {
		return "Envoy sends no empty text", "write a text, in the limits too"
	}
	if address {
		return "Envoy sends addresses alone under this name", "give it another name: " + sendable
	}
	if d.Source == authz.Header && !d.Optional && d.Default == "" {
		return "Envoy lets requests pass uncounted that lack the header, where /v1/authz refuses them",
			"write optional: true if they may pass, or a default"
	}
	return "", ""
}
