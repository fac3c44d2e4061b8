package envoyimport

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/quotad/quotad/policy"
)

// write writes the document.
func write(s *selection, domains []*domain, o Options) []byte {
	b := &bytes.Buffer{}
	writeHeader(b, s, o)
	fmt.Fprintf(b, "version: %d\n", o.Version)
	var regions []string
	for _, r := range o.Regions {
		regions = append(regions, fmt.Sprintf("%s: {weight: %d}", scalar(r.Name), r.Weight))
	}
	fmt.Fprintf(b, "regions: {%s}\n", strings.Join(regions, ", "))
	fmt.Fprintf(b, "on_no_limit: %s\n", policy.NoLimitAllow)
	b.WriteString("domains:\n")
	for _, d := range domains {
		fmt.Fprintf(b, "  - {name: %s, descriptors: %s}\n", scalar(d.name), o.Descriptors)
	}
	b.WriteString("limits:\n")
	for _, d := range domains {
		for _, r := range d.limits {
			writeLimit(b, d, r, o)
		}
	}
	writeExempt(b, domains)
	return b.Bytes()
}

func writeExempt(b *bytes.Buffer, domains []*domain) {
	head := "exempt:\n"
	for _, d := range domains {
		for _, r := range d.exempt {
			more := ""
			if l := r.end().limit; l != nil {
				if more = ", unlimited: true"; !l.unlimited {
					more = zero(l)
				}
				if len(l.replaces) > 0 {
					more += ", replaces: " + aliases(l.replaces)
				}
			}
			fmt.Fprintf(b, "%s  - {domain: %s, entries: %s%s}\n", head, scalar(d.name), entries(r.path),
				more)
			head = ""
		}
	}
}

// zero writes what an exemption says that stands for a limit of 0. Its window has the length that
// envoyproxy/ratelimit gives it, also if those of limits are by the calendar.
func zero(l *rateLimit) string {
	text := ", window: " + unitOf(l).length
	if !l.shadow {
		text = ", deny: true" + text
	}
	if l.name != "" {
		text += ", alias: " + scalar(l.name)
	}
	if l.quota {
		text += ", alternative: true"
	}
	if l.metadata != nil {
		text += ", metadata: " + l.metadata.String()
	}
	return text
}

func unitOf(l *rateLimit) unit {
	return units[slices.IndexFunc(units, func(u unit) bool { return u.name == l.unit })]
}

func writeLimit(b *bytes.Buffer, d *domain, r *row, o Options) {
	l := r.end().limit
	fmt.Fprintf(b, "  - name: %s\n", scalar(r.name))
	fmt.Fprintf(b, "    alias: %s\n", scalar(l.name))
	fmt.Fprintf(b, "    domain: %s\n", scalar(d.name))
	fmt.Fprintf(b, "    entries: %s\n", entries(r.path))
	if len(l.replaces) > 0 {
		fmt.Fprintf(b, "    replaces: %s\n", aliases(l.replaces))
	}
	if l.metadata != nil {
		fmt.Fprintf(b, "    metadata: %s\n", l.metadata)
	}
	fmt.Fprintf(b, "    algorithm: %s\n    limit: %d\n", policy.FixedWindow, l.requests)
	u := unitOf(l)
	if o.Timezone != "" && u.period != "" {
		fmt.Fprintf(b, "    window: %s\n    timezone: %s\n", u.period, scalar(o.Timezone))
	} else {
		fmt.Fprintf(b, "    window: %s\n", u.length)
	}
	if slices.Contains(o.ChargeAlways, r.name) {
		fmt.Fprintf(b, "    charge: %s\n", policy.ChargeAlways)
	}
	if l.shadow {
		b.WriteString("    shadow: true\n")
	}
	if l.quota {
		b.WriteString("    alternative: true\n")
	}
}

// aliases writes the names of limits that are replaced.
func aliases(names []string) string {
	all := make([]string, len(names))
	for i, name := range names {
		all[i] = scalar(name)
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// entries writes a path.
func entries(path []*descriptor) string {
	all := make([]string, len(path))
	for i, step := range path {
		text := "key: " + scalar(step.key)
		if step.value != "" {
			text += ", value: " + scalar(step.value)
		}
		if step.shared {
			text += ", shared: true"
		}
		all[i] = "{" + text + "}"
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func writeHeader(b *bytes.Buffer, s *selection, o Options) {
	b.WriteString("# Made by quotad limits import envoy-ratelimit from\n")
	for _, c := range s.kept {
		fmt.Fprintf(b, "#   %s\n", visible(c.name))
	}
	if len(s.leftOut) > 0 {
		b.WriteString("# Left out, for they could not be imported:\n")
		for _, refused := range s.leftOut {
			fmt.Fprintf(b, "#   %s\n", visible(refused.Name))
		}
	}
	if o.Timezone != "" {
		fmt.Fprintf(b, "# Days, weeks from Monday, months and years are those of the calendar, time zone %s.\n",
			visible(o.Timezone))
	} else {
		b.WriteString("# Windows have fixed lengths, counted from 1970 in UTC as envoyproxy/ratelimit counts them:\n" +
			"# a day is 24h, a week 168h (from Thursday), a month 720h, a year 8760h.\n")
	}
	if o.Descriptors == policy.DecideApart {
		b.WriteString("# Each descriptor of a request is decided and charged alone, as by envoyproxy/ratelimit.\n" +
			"# What is denied is not charged.\n")
	} else {
		b.WriteString("# All descriptors of a request are one decision: either all are charged, or none.\n" +
			"# (envoyproxy/ratelimit charges each alone, also for requests that it denies.)\n")
	}
	if len(o.ChargeAlways) > 0 {
		b.WriteString("# But limits with charge: always are charged whatever is left. What did not fit is owed.\n")
	}
	b.WriteString("# A descriptor with is_negative_hits gives nothing back, unless its domain says\n" +
		"# negative_hits: give_back.\n")
	if leftOut := s.fieldsLeftOut(); len(leftOut) > 0 {
		var all []string
		for _, name := range slices.Sorted(maps.Keys(leftOut)) {
			all = append(all, fmt.Sprintf("%s (%d)", name, leftOut[name]))
		}
		fmt.Fprintf(b, "# Left out, for no decision depends on it: %s.\n", strings.Join(all, ", "))
	}
}

// visible returns the name of a file on one line.
func visible(name string) string {
	if strings.ContainsFunc(name, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
