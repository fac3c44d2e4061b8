package envoyimport

import (
	"errors"
	"slices"

	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

// selection holds the files that are converted, and those that cannot be.
type selection struct {
	kept    []*configuration
	leftOut []Refused
}

// readAll reads the files, each as far as it is valid, and returns the domains of those that are
// kept.
func readAll(files []File, o Options) (*selection, []*domain) {
	s := &selection{}
	descriptors := 0
	var all []*configuration
	for _, f := range files {
		c := &configuration{name: f.Name}
		if root, err := strictyaml.Read(f.Name, f.Text, fileKind); err != nil {
			c.unread = err
		} else {
			r := &reader{descriptors: descriptors, leftOut: map[string]int{}}
			c = r.read(root)
			c.name = f.Name
			if c.err() == nil || !o.KeepGoing {
				descriptors = r.descriptors
			}
		}
		all = append(all, c)
	}
	if !o.KeepGoing {
		return s, s.together(all, o)
	}
	for _, c := range all {
		if c.err() == nil { // problems of files together are told of the later one
			join(slices.Concat(s.kept, []*configuration{c}), o)
		}
		s.take(c)
	}
	return s, join(s.kept, o)
}

// together puts all files together, whatever is wrong with some.
func (s *selection) together(all []*configuration, o Options) []*domain {
	domains := join(all, o)
	for _, c := range all {
		s.take(c)
	}
	return domains
}

// take keeps a file, or leaves it out.
func (s *selection) take(c *configuration) {
	if problems, ok := errors.AsType[strictyaml.Errors](c.err()); ok {
		s.leftOut = append(s.leftOut, Refused{c.name, problems})
		return
	}
	s.kept = append(s.kept, c)
}

// join returns the domains of some files, and reports what is wrong with them together.
func join(all []*configuration, o Options) []*domain {
	domains := collect(all, o.MergeDomains)
	for _, d := range domains {
		d.flatten()
	}
	return domains
}

// err returns the problems of a file so far.
func (c *configuration) err() error {
	if c.unread != nil {
		return c.unread
	}
	return c.root.Err()
}

// warnings returns those of the files that are kept.
func (s *selection) warnings() (all []policy.Warning) {
	for _, c := range s.kept {
		all = append(all, c.reader.warnings...)
	}
	return all[:min(len(all), strictyaml.MaxErrors)]
}

// fieldsLeftOut returns how often each field of the files that are kept was left out.
func (s *selection) fieldsLeftOut() map[string]int {
	all := map[string]int{}
	for _, c := range s.kept {
		for name, n := range c.reader.leftOut {
			all[name] += n
		}
	}
	return all
}
