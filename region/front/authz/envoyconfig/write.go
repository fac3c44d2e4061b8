package envoyconfig

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/quotad/quotad/policy"
)

// indent stands before the lists and the bounds in configuration.yaml.
const indent = "                        "

// written returns lists as Envoy's rate_limits.
func written(lists []list) string {
	var b strings.Builder
	line := func(depth int, format string, args ...any) {
		fmt.Fprintf(&b, indent+strings.Repeat("  ", depth)+format+"\n", args...)
	}
	known := false
	for _, l := range lists {
		if !known && l.knows() {
			known = true
			line(0, "# change: who your clients are. Here an API key says so.")
		}
		line(0, "- actions:")
		conditions := l.conditions
		for _, a := range l.actions {
			headers := a.headers
			if a.carries() {
				headers, conditions = append(headers, conditions...), nil
			}
			switch {
			case a.text != "":
				line(2, "- %s", a.text)
			case len(headers) == 0:
				line(2, "- generic_key: {descriptor_key: %s, descriptor_value: %s}", quoted(a.name), quoted(a.value))
			default:
				line(2, "- header_value_match:")
				line(4, "descriptor_key: %s", quoted(a.name))
				line(4, "descriptor_value: %s", quoted(a.value))
				line(4, "headers:")
				for _, h := range headers {
					line(5, "- %s", h)
				}
			}
		}
	}
	return b.String()
}

// knows reports whether the list is for a known value of a header.
func (l *list) knows() bool {
	for _, a := range l.actions {
		if len(a.headers) > 0 {
			return true
		}
	}
	return false
}

// writtenBounds returns bounds as the descriptors of Envoy's local rate limit, of those that are
// reached.
func writtenBounds(all []bound, reached func(bound) bool) string {
	var b strings.Builder
	for _, one := range all {
		if !reached(one) {
			continue
		}
		if one.none != "" {
			fmt.Fprintf(&b, "%s# none for %s: %s\n", indent, one.of, one.none)
			continue
		}
		var entries []string
		for _, e := range one.entries {
			if e.AnyValue {
				entries = append(entries, fmt.Sprintf("{key: %s}", quoted(e.Name)))
			} else {
				entries = append(entries, fmt.Sprintf("{key: %s, value: %s}", quoted(e.Name), quoted(e.Value)))
			}
		}
		fmt.Fprintf(&b, "%s- entries: [%s]\n%s  token_bucket: {max_tokens: %d, tokens_per_fill: %d, fill_interval: %s}\n",
			indent, strings.Join(entries, ", "), indent, one.bucket.Tokens, one.bucket.TokensPerFill,
			seconds(one.bucket))
	}
	return b.String()
}

// seconds returns how long a bucket takes for a fill, as Envoy reads durations.
func seconds(b policy.LocalBound) string {
	return strconv.FormatFloat(b.FillInterval.Seconds(), 'f', -1, 64) + "s"
}
