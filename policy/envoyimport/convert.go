package envoyimport

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// Options are what the configuration of envoyproxy/ratelimit does not say.
type Options struct {
	// Version is the version of the document, 1 to policy.MaxVersion.
	Version int64
	// Regions holds the regions of the document with their weights.
	Regions []policy.Region
	// Descriptors says how several descriptors of one request are decided, in all domains.
	Descriptors policy.Together
	// Timezone makes days, weeks, months and years those of the calendar in this time zone. If it
	// is empty, they have the lengths that envoyproxy/ratelimit gives them, counted from 1970 in
	// UTC.
	Timezone string
	// MergeDomains lets several files describe one domain.
	MergeDomains bool
	// ChargeAlways holds the names that limits have in the document. These limits, of any domain, get
	// charge: always.
	ChargeAlways []string
	// KeepGoing leaves out each file that cannot be converted, instead of refusing all of them. Of
	// two files that do not go together, it keeps the first.
	KeepGoing bool
	// Previous is the document that was made before, if there is one. The new document has its
	// version if it means the same, and the next one if not, in place of Version.
	Previous *policy.Document
}

// Result is what an import makes.
type Result struct {
	Document []byte // which [policy.Parse] accepts
	Limits   int
	Exempt   int
	// Warnings says what was left out, or has no effect, in the order of the files: all of it, or
	// strictyaml.MaxErrors warnings if there are more.
	Warnings []policy.Warning
	LeftOut  []Refused // in the order of the files
}

// Refused is a file that was left out, and why.
type Refused struct {
	Name     string
	Problems strictyaml.Errors
}

// ErrNoLimit says that nothing in the files is limited.
var ErrNoLimit = errors.New("nothing is limited: no descriptor has a rate_limit with a unit")

// Convert makes a limits document from configuration files. The error is a [strictyaml.Errors] with
// whatever is wrong with the files and whatever a limits document cannot express, or [ErrNoLimit],
// or says that the document would be too large, or that it would be no valid one (see
// [CheckOptions]), or that no limit has a name of ChargeAlways.
func Convert(files []File, o Options) (Result, error) {
	s, domains := readAll(files, o)
	var problems strictyaml.Errors
	for _, refused := range s.leftOut {
		problems = append(problems, refused.Problems...)
	}
	if len(problems) > 0 && !o.KeepGoing {
		return Result{}, problems
	}
	result := Result{Warnings: s.warnings(), LeftOut: s.leftOut}
	for _, d := range domains {
		d.nameLimits()
		result.Limits += len(d.limits)
		result.Exempt += len(d.exempt)
	}
	switch {
	case result.Limits == 0 && len(problems) > 0:
		return Result{}, problems
	case result.Limits == 0:
		return Result{}, ErrNoLimit
	}
	if err := checkNames(domains, o.ChargeAlways); err != nil {
		return Result{}, err
	}
	var err error
	result.Document, err = s.document(domains, o)
	if err != nil {
		return Result{}, err
	}
	return result, nil
}

// document writes a document that is valid.
func (s *selection) document(domains []*domain, o Options) ([]byte, error) {
	if o.Previous != nil {
		o.Version = o.Previous.Version
	}
	text := write(s, domains, o)
	if n := len(text); n > policy.MaxDocumentBytes {
		return nil, fmt.Errorf("the document would have %d bytes, and may have %d: import fewer files into one document",
			n, policy.MaxDocumentBytes)
	}
	made, err := policy.Parse("the document", text)
	if err != nil {
		return nil, fmt.Errorf("a limits document cannot say this: %w", err)
	}
	if o.Previous != nil && made.Epoch() != o.Previous.Epoch() {
		o.Version, o.Previous = o.Previous.Version+1, nil
		return s.document(domains, o)
	}
	return text, nil
}

// checkNames reports names of limits that are to be charged always and that no limit has.
func checkNames(domains []*domain, always []string) error {
	names := map[string]bool{}
	for _, d := range domains {
		for _, r := range d.limits {
			names[r.name] = true
		}
	}
	for _, name := range always {
		if !names[name] {
			return fmt.Errorf("charge always: no imported limit is named %q; choose one of %s",
				name, strings.Join(slices.Sorted(maps.Keys(names)), ", "))
		}
	}
	return nil
}

// CheckOptions says what is wrong with the version and the regions of a document.
func CheckOptions(o Options) error {
	limit := []*row{{name: "a", path: []*descriptor{{key: "a",
		limit: &rateLimit{requests: 1, unit: "second"}}}}}
	if o.Previous != nil {
		o.Version = o.Previous.Version
	}
	document := write(&selection{}, []*domain{{name: "a", limits: limit}}, o)
	_, err := policy.Parse("the document", document)
	problems, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		return err
	}
	first := problems[0] // all concern the version or the regions
	return fmt.Errorf("%s: %s; %s", first.Path, first.Problem, first.Mend)
}
