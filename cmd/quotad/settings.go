package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/strictyaml"
)

// layer is where a setting was given; the highest one that gives it counts.
type layer int

const (
	byDefault layer = iota
	byFile
	byEnvironment
	byFlag
)

// place is where a value was given, for messages.
type place struct {
	layer layer
	name  string              // the setting in the file, the variable or the flag
	pos   strictyaml.Position // in the file
}

// fail reports what is wrong with what stands there, in the form of package policy.
func (p place) fail(problem, mend string) error {
	if p.layer == byFile {
		return &strictyaml.Error{Pos: p.pos, Path: p.name, Problem: problem, Mend: mend}
	}
	return fmt.Errorf("%s: %s; %s", p.name, problem, mend)
}

// value is the text of a value as it was given.
type value struct {
	text   string
	folder string // what a relative path starts from; empty: the working directory
	place
}

// setting is one thing that can be set: a field of the node file, a variable of the environment and a flag, with
// names made from one another.
type setting struct {
	path     string // in the node file: listen.grpc
	kind     string // what the value is, in one word, for the help
	usage    string
	fallback string // the text that counts if nothing is given; empty: none
	list     bool   // several values may be given
	read     func(c *nodeConfig, all []value) error
}

func (s setting) flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.path) }
func (s setting) variable() string {
	return "QUOTAD_" + strings.ToUpper(strings.ReplaceAll(s.path, ".", "_"))
}

// anywhere names the ways in which a setting can be given.
func (s setting) anywhere() string {
	return fmt.Sprintf("set %s in the node file, or --%s, or %s", s.path, s.flag(), s.variable())
}

// one reads the single value of a setting.
func one(read func(c *nodeConfig, v value) error) func(*nodeConfig, []value) error {
	return func(c *nodeConfig, all []value) error { return read(c, all[0]) }
}

// flagValue holds what flags give to a setting, to be read when all layers are known.
type flagValue struct {
	setting setting
	texts   []string
}

// String implements pflag.Value; the default is shown by way of DefValue.
func (f *flagValue) String() string { return strings.Join(f.texts, ",") }

// Type implements pflag.Value.
func (f *flagValue) Type() string { return f.setting.kind }

// Set implements pflag.Value.
func (f *flagValue) Set(text string) error {
	if !f.setting.list {
		f.texts = nil
	}
	f.texts = append(f.texts, f.setting.split(text)...)
	return nil
}

// split takes the text of a variable or a flag apart.
func (s setting) split(text string) []string {
	if !s.list {
		return []string{text}
	}
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// settingFlags adds a flag for every setting.
func settingFlags(flags *pflag.FlagSet) map[string]*flagValue {
	given := make(map[string]*flagValue, len(settings))
	for _, s := range settings {
		v := &flagValue{setting: s}
		given[s.path] = v
		f := flags.VarPF(v, s.flag(), "", s.usage)
		f.DefValue = s.fallback
		if s.kind == "bool" {
			f.NoOptDefVal = "true"
		}
	}
	return given
}

// configure puts the layers together: flags before environment before node file before defaults. Everything that is
// wrong is reported at once, an overridden value that is wrong included.
func configure(file string, flags map[string]*flagValue, environment func(string) (string, bool)) (*nodeConfig, error) {
	c := &nodeConfig{places: map[string]place{}}
	var inFile map[string][]value
	var errs []error
	if file != "" {
		inFile, errs = readNodeFile(file)
	}
	for _, s := range settings {
		if s.fallback != "" {
			errs = append(errs, c.take(s, []value{{text: s.fallback, place: place{byDefault, s.path, strictyaml.Position{}}}}))
		}
		errs = append(errs, c.take(s, inFile[s.path]))
		if text, ok := environment(s.variable()); ok {
			errs = append(errs, c.take(s, s.values(s.split(text), place{layer: byEnvironment, name: s.variable()})))
		}
		errs = append(errs, c.take(s, s.values(flags[s.path].texts, place{layer: byFlag, name: "--" + s.flag()})))
	}
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 0 {
		errs = c.complete()
	}
	if len(errs) > 0 {
		inOrder(errs)
		return nil, exit.Usage(fmt.Errorf("the node cannot be started as configured: mend %s and try again\n%w",
			show.Counted(len(errs), "problem"), errors.Join(errs...)))
	}
	return c, nil
}

// values gives texts of one place.
func (s setting) values(texts []string, at place) []value {
	all := make([]value, len(texts))
	for i, text := range texts {
		all[i] = value{text: text, place: at}
	}
	return all
}

// take reads what one layer gives to a setting; nothing given changes nothing.
func (c *nodeConfig) take(s setting, all []value) error {
	if len(all) == 0 {
		return nil
	}
	c.places[s.path] = all[0].place
	return s.read(c, all)
}

// inOrder sorts problems as a reader meets them: those of the file by position, then the others.
func inOrder(errs []error) {
	slices.SortStableFunc(errs, func(a, b error) int {
		var p, q *strictyaml.Error
		switch inFile, other := errors.As(a, &p), errors.As(b, &q); {
		case inFile && other && p.Pos.Line != q.Pos.Line:
			return p.Pos.Line - q.Pos.Line
		case inFile && other:
			return p.Pos.Column - q.Pos.Column
		case inFile:
			return -1
		case other:
			return 1
		}
		return 0
	})
}

// environment looks variables up; an empty one counts as not given, as container platforms cannot remove any.
func environment(name string) (string, bool) {
	text := os.Getenv(name)
	return text, text != ""
}
