package envoyconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/region/front/authz"
)

// matcher is a condition on a header of a request, as a line of YAML.
type matcher string

func (m matcher) is(other matcher) bool { return m == other }

// below is what may follow a path in the header, which has the query as well: nothing, or what no name
// goes on with. Services may cut off more than a slash and what follows, such as ";v=1" or a blank.
const below = "([^A-Za-z0-9._~-].*)?"

// conditionsOf returns what a request must be for a rule.
func conditionsOf(r authz.Rule) (all []matcher) {
	const is, fits = "{name: %q, string_match: {exact: %s}}", "{name: %q, string_match: {safe_regex: {regex: %s}}}"
	switch len(r.Methods) {
	case 0:
	case 1:
		all = append(all, matcher(fmt.Sprintf(is, ":method", quoted(r.Methods[0]))))
	default:
		all = append(all, matcher(fmt.Sprintf(fits, ":method", quoted(strings.Join(r.Methods, "|")))))
	}
	if path := above(r); path != "" {
		all = append(all, matcher(fmt.Sprintf(fits, ":path", quoted(regexp.QuoteMeta(path)+below))))
	}
	if r.Host != "" {
		host := "(?i)" + regexp.QuoteMeta(r.Host) + "(:[0-9]+)?"
		all = append(all, matcher(fmt.Sprintf(fits, ":authority", quoted(host))))
	}
	return all
}

// above returns the path that a rule is for, and all below; empty: all paths.
func above(r authz.Rule) string { return strings.TrimSuffix(r.Path, "/") }

// under reports whether a path is another one, or below it.
func under(path, above string) bool { return path == above || strings.HasPrefix(path, above+"/") }

// overlap reports whether some request is for both rules.
func overlap(a, b authz.Rule) bool {
	return (under(above(a), above(b)) || under(above(b), above(a))) &&
		(a.Host == "" || b.Host == "" || a.Host == b.Host) &&
		(len(a.Methods) == 0 || len(b.Methods) == 0 ||
			slices.ContainsFunc(a.Methods, func(m string) bool { return slices.Contains(b.Methods, m) }))
}

// wider reports whether a rule is another one than b, and for all requests that b is for. Of two that
// are for the same the first is wider.
func wider(a, b authz.Rule) bool {
	return a.Field != b.Field && holds(a, b) && (!holds(b, a) || a.Pos.Compare(b.Pos) < 0)
}

func holds(a, b authz.Rule) bool {
	return under(above(b), above(a)) && (a.Host == "" || a.Host == b.Host) &&
		(len(a.Methods) == 0 || len(b.Methods) > 0 &&
			!slices.ContainsFunc(b.Methods, func(m string) bool { return !slices.Contains(a.Methods, m) }))
}

// unreserved are the paths that all clients' ways of writing come to, once Envoy has normalised them:
// it decodes these characters and no others.
var unreserved = regexp.MustCompile(`^[A-Za-z0-9/._~-]*$`)

// checkConditions returns what of a rule's conditions Envoy does not decide as /v1/authz does.
func checkConditions(r authz.Rule) (wrong strictyaml.Errors) {
	switch at := r.Field + ".path"; {
	case !unreserved.MatchString(r.Path):
		wrong = append(wrong, &strictyaml.Error{Pos: r.Pos, Path: at,
			Problem: "Envoy compares paths as they are encoded, so a client could write this one in another way",
			Mend:    "use letters, digits and / . _ ~ - alone, or a path above it"})
	case strings.Contains(r.Path, "//"):
		wrong = append(wrong, &strictyaml.Error{Pos: r.Pos, Path: at,
			Problem: "no request has this path, for Envoy makes one slash of several", Mend: "write one slash"})
	}
	return wrong
}
