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
}

// Result is what an import makes.
type Result struct {
	Document []byte // which [policy.Parse] accepts
	Limits   int
	Exempt   int
	// Warnings says what was left out, or has no effect, in the order of the files: all of it, or
	// strictyaml.MaxErrors warnings if there are more.
	Warnings []policy.Warning
}

// ErrNoLimit says that nothing in the files is limited.
var ErrNoLimit = errors.New("nothing is limited: no descriptor has a rate_limit with a unit")

// Convert makes a limits document from configuration files. The error is a [strictyaml.Errors] with
// whatever is wrong with the files and whatever a limits document cannot express, or [ErrNoLimit],
// or says that the document would be too large, or that it would be no valid one (see
// [CheckOptions]), or that no limit has a name of ChargeAlways.
func Convert(files []File, o Options) (Result, error) {
	r := &reader{leftOut: map[string]int{}}
	unread := make([]error, len(files))
	all := make([]*configuration, len(files))
	for i, f := range files {
		root, err := strictyaml.Read(f.Name, f.Text, fileKind)
		if err != nil {
			unread[i] = err
			continue
		}
		all[i] = r.read(root)
	}
	domains := collect(all, o.MergeDomains)
	for _, d := range domains {
		d.flatten()
	}
	if problems := problemsOf(all, unread); len(problems) > 0 {
		return Result{}, problems
	}
	result := Result{Warnings: r.warnings}
	for _, d := range domains {
		d.nameLimits()
		result.Limits += len(d.limits)
		result.Exempt += len(d.exempt)
	}
	if result.Limits == 0 {
		return Result{}, ErrNoLimit
	}
	if err := checkNames(domains, o.ChargeAlways); err != nil {
		return Result{}, err
	}
	result.Document = write(files, domains, r.leftOut, o)
	if n := len(result.Document); n > policy.MaxDocumentBytes {
		return Result{}, fmt.Errorf("the document would have %d bytes, and may have %d: import fewer files into one document",
			n, policy.MaxDocumentBytes)
	}
	if _, err := policy.Parse("the document", result.Document); err != nil {
		return Result{}, fmt.Errorf("a limits document cannot say this: %w", err)
	}
	return result, nil
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

// problemsOf returns the problems of all files in their order, each file's in the order of its
// lines.
func problemsOf(all []*configuration, unread []error) (problems strictyaml.Errors) {
	for i, c := range all {
		err := unread[i]
		if c != nil {
			err = c.root.Err()
		}
		if found, ok := errors.AsType[strictyaml.Errors](err); ok {
			problems = append(problems, found...)
		}
	}
	return problems
}

// CheckOptions says what is wrong with the version and the regions of a document.
func CheckOptions(o Options) error {
	limit := []*row{{name: "a", path: []*descriptor{{key: "a",
		limit: &rateLimit{requests: 1, unit: "second"}}}}}
	document := write(nil, []*domain{{name: "a", limits: limit}}, nil, o)
	_, err := policy.Parse("the document", document)
	problems, ok := errors.AsType[strictyaml.Errors](err)
	if !ok {
		return err
	}
	first := problems[0] // all concern the version or the regions
	return fmt.Errorf("%s: %s; %s", first.Path, first.Problem, first.Mend)
}
