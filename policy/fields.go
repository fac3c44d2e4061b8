package policy

import (
	"fmt"
	"regexp"
	"time"

	"github.com/quotad/quotad/policy/strictyaml"
)

// charset is a set of allowed names, and the words that describe it.
type charset struct {
	form *regexp.Regexp
	mend string
}

var (
	regionNames = charset{regexp.MustCompile(`^[a-z0-9-]+$`),
		"use lower-case letters, digits and '-', at most 63 bytes"}
	limitNames = charset{regexp.MustCompile(`^[a-z0-9._-]+$`),
		"use lower-case letters, digits, '.', '_' and '-', at most 63 bytes"}
	// domainNames has what Envoy's gateways make domains of, such as default/edge/http.
	domainNames = descriptorNames
	// descriptorNames leaves out what separates names from values and from one another where people
	// write them, and *.
	descriptorNames = charset{regexp.MustCompile(`^[\p{L}\p{M}\p{N}!#$%&()+./:;<>?@^_{|}~\[\]-]+$`),
		`use letters, digits and signs but for quotes, blanks, commas, =, * and \, at most 63 bytes`}
)

// IsName reports whether a text may be the name of a domain and of a descriptor.
func IsName(text string) bool { return descriptorNames.holds(text) }

// MendName says what the names of domains and descriptors may have, in the words of an error.
var MendName = descriptorNames.mend

func (c charset) holds(name string) bool {
	return len(name) <= MaxNameBytes && c.form.MatchString(name)
}

// read reads a name.
func (c charset) read(v strictyaml.Value) string {
	name, _ := readName(v, c)
	return name
}

// readName reads a name of a charset.
func readName(v strictyaml.Value, c charset) (string, bool) {
	name, ok := v.Text(c.mend)
	if !ok {
		return "", false
	}
	return name, checkName(v, name, c)
}

func checkName(v strictyaml.Value, name string, c charset) bool {
	switch {
	case c.holds(name):
		return true
	case len(name) > MaxNameBytes:
		v.Fail(fmt.Sprintf("%s is %d bytes long", v.Describe(), len(name)), c.mend)
	default:
		v.Fail(fmt.Sprintf("%q is not a valid name", name), c.mend)
	}
	return false
}

// readFraction reads a decimal number from 0 to highest; it returns 0 if it refuses the value.
func readFraction(v strictyaml.Value, highest PPM) PPM {
	mend := fmt.Sprintf("write a number from 0 to %s with at most 6 decimals, such as 0.5", highest)
	text, ok := v.Number(mend)
	if !ok {
		return 0
	}
	p, ok := parsePPM(text)
	if !ok {
		v.Fail(strictyaml.InWords(text)+" is not a fraction", mend)
		return 0
	}
	if p > highest {
		v.Fail(strictyaml.InWords(text)+" is out of range", mend)
		return 0
	}
	return p
}

// readWindow reads a duration in the range of windows; it returns 0 if it refuses the value.
func readWindow(v strictyaml.Value) time.Duration {
	text, _ := v.IsText()
	window, ok := parseWindow(text)
	switch {
	case !ok:
		v.Fail(v.Describe()+" is not a duration", "write it like 500ms, 10s, 1m, 1h or 24h, or write day, week, month or year")
	case window < MinWindow || window > MaxWindow:
		v.Fail(v.Describe()+" is out of range", "write a duration from 10ms to 366d")
	case window%time.Microsecond != 0:
		v.Fail(v.Describe()+" is not a whole number of microseconds",
			"round it, for the store's clock counts microseconds")
	default:
		return window
	}
	return 0
}
