package nodeconfig

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/policy/strictyaml"
)

// place is where a value was given, for error messages.
type place struct {
	layer int                 // a higher one overrides a lower one
	name  string              // of the setting in the file, the variable or the flag
	pos   strictyaml.Position // in the file
}

// The layers, from the one that all others override.
const (
	byDefault = iota
	byFile
	byEnvironment
	byFlag
)

// fail returns an error about the value at the place.
func (p place) fail(problem, mend string) error {
	if p.layer == byFile {
		return &strictyaml.Error{Pos: p.pos, Path: p.name, Problem: problem, Mend: mend}
	}
	return fmt.Errorf("%s: %s; %s", p.name, problem, mend)
}

// Fail returns an error about a setting that shows only when the setting is used. The error has the
// setting's place.
func (c *Config) Fail(path, problem, mend string) error {
	return c.given[path].fail(problem, mend)
}

// Flag returns the name of the setting's flag.
func (s Setting) Flag() string { return strings.NewReplacer(".", "-", "_", "-").Replace(s.Path) }

// Variable returns the name of the setting's environment variable.
func (s Setting) Variable() string {
	return "QUOTAD_" + strings.ToUpper(strings.ReplaceAll(s.Path, ".", "_"))
}

// anywhere names all ways in which a setting can be given.
func anywhere(path string) string {
	s := Setting{Path: path}
	return fmt.Sprintf("set %s in the node file, or --%s, or %s", path, s.Flag(), s.Variable())
}

// split returns the values in the text of a variable or a flag.
func (s Setting) split(text string) []string {
	if !s.list {
		return []string{text}
	}
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// flagValue holds the texts that flags give to a setting. They are read when all layers are known.
type flagValue struct {
	Setting
	texts []string
}

// String implements pflag.Value. The help shows the default by DefValue.
func (f *flagValue) String() string { return strings.Join(f.texts, ",") }

// Type implements pflag.Value.
func (f *flagValue) Type() string { return f.Kind }

// Set implements pflag.Value.
func (f *flagValue) Set(text string) error {
	if !f.list {
		f.texts = nil
	}
	f.texts = append(f.texts, f.split(text)...)
	return nil
}

// Layers are the places in which a command finds the settings of a node.
type Layers struct {
	file        *pflag.Flag
	flags       map[string]*flagValue
	environment func(name string) (string, bool)
}

// AddFlags adds a flag for every setting, and --config for the node file. environment looks up
// variables, and is usually [Environment].
func AddFlags(flags *pflag.FlagSet, environment func(name string) (string, bool)) *Layers {
	flags.String("config", "", "node file")
	l := &Layers{flags.Lookup("config"), make(map[string]*flagValue), environment}
	for _, s := range Settings() {
		v := &flagValue{Setting: s}
		l.flags[s.Path] = v
		f := flags.VarPF(v, s.Flag(), "", s.Usage)
		f.DefValue = s.Default
		if s.Kind == "bool" || s.Path == "insecure" {
			f.NoOptDefVal = "true"
		}
	}
	return l
}

// gone are settings that there were, and what to do instead. Their variables are refused, because one
// that nobody reads goes unnoticed.
var gone = map[string]string{
	"request_id_repeats": "a request is repeated three times; unset it",
	"remember.buckets":   "set QUOTAD_REMEMBER",
	"remember.uses":      "set QUOTAD_REMEMBER, to four times as many",
}

// Environment looks a variable up. An empty variable counts as not given, because container
// platforms cannot remove variables.
func Environment(name string) (string, bool) {
	text := os.Getenv(name)
	return text, text != ""
}

// Read puts the layers together and returns the settings, or all errors as one.
func (l *Layers) Read() (*Config, error) {
	path := l.file.Value.String()
	if !l.file.Changed {
		path, _ = l.environment("QUOTAD_CONFIG")
	}
	c := &Config{given: make(map[string]place)}
	settings := c.settings()
	inFile, errs := readFile(path, settings)
	for _, s := range settings {
		for _, values := range [][]value{l.fallback(s), inFile[s.Path], l.variable(s), l.flag(s)} {
			if len(values) == 0 {
				continue
			}
			c.given[s.Path] = values[0].place
			if err := s.read(values); err != nil {
				errs = append(errs, err)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(gone)) {
		s := Setting{Path: path}
		if _, given := l.environment(s.Variable()); given {
			errs = append(errs, place{layer: byEnvironment, name: s.Variable()}.fail("there is no such setting any more", gone[path]))
		}
	}
	if len(errs) == 0 {
		errs = c.Validate()
	}
	if len(errs) > 0 {
		slices.SortStableFunc(errs, asRead)
		return nil, fmt.Errorf(
			"the node cannot be started as configured: mend %s and try again\n%w",
			show.Counted(len(errs), "problem"), errors.Join(errs...))
	}
	return c, nil
}

func (l *Layers) fallback(s Setting) []value {
	if s.Default == "" {
		return nil
	}
	return valuesAt(place{layer: byDefault, name: s.Path}, s.Default)
}

func (l *Layers) variable(s Setting) []value {
	text, given := l.environment(s.Variable())
	if !given {
		return nil
	}
	return valuesAt(place{layer: byEnvironment, name: s.Variable()}, s.split(text)...)
}

func (l *Layers) flag(s Setting) []value {
	return valuesAt(place{layer: byFlag, name: "--" + s.Flag()}, l.flags[s.Path].texts...)
}

// valuesAt returns texts as values with the same place.
func valuesAt(at place, texts ...string) []value {
	all := make([]value, len(texts))
	for i, text := range texts {
		all[i] = value{text: text, place: at}
	}
	return all
}

// asRead orders errors as a reader meets them: those of the file by position, then the others.
func asRead(a, b error) int {
	at := func(err error) strictyaml.Position {
		if inFile, ok := errors.AsType[*strictyaml.Error](err); ok {
			return inFile.Pos
		}
		return strictyaml.Position{Line: math.MaxInt}
	}
	return at(a).Compare(at(b))
}
