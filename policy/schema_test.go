package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

func compileSchema(t testing.TB) *jsonschema.Schema {
	t.Helper()
	parsed, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema()))
	suite.Must(t, err)
	const at = "limits.schema.json"
	c := jsonschema.NewCompiler()
	suite.Must(t, c.AddResource(at, parsed))
	compiled, err := c.Compile(at)
	suite.Must(t, err)
	return compiled
}

// judgedBySchema returns the error of the schema about a document as an editor would read it, which
// knows only YAML. The second result is false if it is no YAML.
func judgedBySchema(schema *jsonschema.Schema, src []byte) (*jsonschema.ValidationError, bool) {
	var document any
	if err := yaml.Unmarshal(src, &document); err != nil {
		return nil, false
	}
	err, _ := errors.AsType[*jsonschema.ValidationError](schema.Validate(document))
	return err, true
}

// place is a field that the schema refuses, named as Parse names it. Of a bad name only the name is
// known: the library says it at the place of another error.
type place struct {
	path    string
	missing bool
	badName string
}

// placesOf returns the fields that an error is about.
func placesOf(err *jsonschema.ValidationError) (all []place) {
	path := pathOf(err.InstanceLocation)
	within := func(name string) string { return strings.TrimPrefix(path+"."+name, ".") }
	switch k := err.ErrorKind.(type) {
	case *kind.PropertyNames:
		return []place{{badName: k.Property}}
	case *kind.Required:
		for _, name := range k.Missing {
			all = append(all, place{path: within(name), missing: true})
		}
		return all
	case *kind.AdditionalProperties:
		for _, name := range k.Properties {
			all = append(all, place{path: within(name)})
		}
		return all
	}
	if len(err.Causes) == 0 {
		return []place{{path: path}}
	}
	for _, cause := range err.Causes {
		all = append(all, placesOf(cause)...)
	}
	return all
}

var index = regexp.MustCompile(`\.([0-9]+)`)

func pathOf(location []string) string {
	return strings.TrimPrefix(index.ReplaceAllString("."+strings.Join(location, "."), "[$1]"), ".")
}

// within reports whether a field is another one or inside it.
func within(field, other string) bool {
	rest, inside := strings.CutPrefix(field, other)
	return inside && (other == "" || rest == "" || rest[0] == '.' || rest[0] == '[')
}

// beyondSchema are the problems that a schema of this draft cannot name.
var beyondSchema = regexp.MustCompile(strings.Join([]string{
	"is too large for its window", "over ten years to fill", // arithmetic
	`^"[0-9.a-z]+" is out of range$`, "whole number of microseconds", // of durations
	"is named twice", "is exempt already", "has this name", "has the same name", "has the same path",
	"is also the name of a repeated entry", // of several entries
	"^no region has this name$", "^the document has no region", "^all regions are fenced$",
	"^every region with a weight is fenced$", "is one of the regions, too$", "^a limit cannot replace itself$",
	"^no time zone is named",
	"is not a whole number in plain digits", "is not a fraction", // how a number is written
	"^True is neither true nor false$", "^1 is not text in YAML$", // as a name it is text in JSON
	"bytes long$", // a schema counts characters
	"is not the same to all readers of YAML$", "more than 8 deep$", "more than 256 values$", // of metadata
	"^1e999 is out of range$",
	"is no time to live of an assignment", "is less than a token for each", "leaves the stores less than two tokens",
	"too large a part of a window of", "is less than an assignment of a token a second",
	"over ten years to be covered", "is too large for charge: always", // arithmetic
	"is less than a unit a second",                                              // of assign, beside other fields
	"so each class has a count of its own", "all its requests are of one class", // of classes, beside other fields
	"the class stands behind 8 entries", "^home mode: the limit is too small", "says the class, and is passed over",
	"that the smallest region has by itself",
}, "|"))

// TestSchemaRefusesWhatParseRefuses: each problem of each invalid document is also one of the
// schema, in the same field, or one that a schema cannot name. The schema has no others.
func TestSchemaRefusesWhatParseRefuses(t *testing.T) {
	schema := compileSchema(t)
	both, beyond := 0, 0
	for title, src := range samples(t, "testdata/invalid/*.txtar") {
		_, err := Parse("limits.yaml", []byte(src))
		problems, _ := errors.AsType[strictyaml.Errors](err)
		verdict, isYAML := judgedBySchema(schema, []byte(src))
		if !isYAML {
			continue
		}
		var places []place
		if verdict != nil {
			places = placesOf(verdict)
		}
		for _, p := range problems {
			switch {
			case slices.ContainsFunc(places, func(at place) bool { return at.isIn(p) }):
				both++
			case beyondSchema.MatchString(p.Problem) || ofYAML.MatchString(p.Problem):
				beyond++
			default:
				t.Errorf("%s: the schema says nothing of: %v", title, p)
			}
		}
		for _, at := range places {
			if !slices.ContainsFunc(problems, func(p *strictyaml.Error) bool { return at.isOf(p) }) {
				t.Errorf("%s: only the schema refuses %s", title, at.path)
			}
		}
	}
	if both < 150 || beyond > 72 {
		t.Errorf("%d problems were found by both, %d are beyond a schema", both, beyond)
	}
}

// ofYAML are problems of the file that YAML allows and quotad does not.
var ofYAML = regexp.MustCompile(
	"is written twice|a second document|anchor|alias|merge|tag|directive")

// isIn reports whether a place is that of a problem.
func (at place) isIn(p *strictyaml.Error) bool {
	if at.badName != "" {
		return strings.HasPrefix(p.Problem, strconv.Quote(at.badName)+" is not a valid name") ||
			strings.HasPrefix(p.Problem, strconv.Quote(at.badName[:min(40, len(at.badName))]+"...")+
				" is 6")
	}
	return within(at.path, p.Path) || within(p.Path, at.path)
}

// isOf reports whether a place that the schema refuses is that of a problem. Parse does not name a
// missing field where an unknown one was probably meant for it, and stops at a problem of the file
// as a whole.
func (at place) isOf(p *strictyaml.Error) bool {
	if at.missing && p.Problem == "no such field" {
		parent, _, _ := cutLast(at.path)
		other, _, _ := cutLast(p.Path)
		return parent == other
	}
	return at.isIn(p) || ofYAML.MatchString(p.Problem)
}

func cutLast(path string) (before, after string, found bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", path, false
	}
	return path[:i], path[i+1:], true
}

// samples returns the documents of archives by their titles.
func samples(t testing.TB, pattern string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	for _, name := range names {
		src, err := os.ReadFile(name)
		suite.Must(t, err)
		if !strings.HasSuffix(name, ".txtar") {
			all[name] = string(src)
			continue
		}
		for _, part := range strings.Split("\n"+string(src), "\n-- ")[1:] {
			title, text, _ := strings.Cut(part, " --\n")
			if title == "document" || strings.HasSuffix("/"+title, "/limits.yaml") {
				all[name+": "+title] = text + "\n"
			}
		}
	}
	return all
}

// TestSchemaAcceptsWhatParseAccepts: all documents of the tests and of the deployments that Parse
// accepts.
func TestSchemaAcceptsWhatParseAccepts(t *testing.T) {
	schema := compileSchema(t)
	accepted := 0
	for _, pattern := range []string{"testdata/limits.yaml", "testdata/warned/*.txtar",
		"../deploy/*/limits.yaml", "envoyimport/testdata/made/*.txtar"} {
		for title, src := range samples(t, pattern) {
			if _, err := Parse("limits.yaml", []byte(src)); err != nil {
				continue
			}
			accepted++
			if err, isYAML := judgedBySchema(schema, []byte(src)); err != nil || !isYAML {
				t.Errorf("%s: %v", title, err)
			}
		}
	}
	if accepted < 15 {
		t.Errorf("only %d documents were accepted", accepted)
	}
}

// FuzzSchema: the schema accepts what Parse accepts, whatever it is.
func FuzzSchema(f *testing.F) {
	for _, pattern := range []string{"testdata/limits.yaml", "testdata/warned/*.txtar"} {
		for _, src := range samples(f, pattern) {
			f.Add([]byte(src))
		}
	}
	f.Add([]byte(metadataDocument(`a: [1, {b: null, c: true}], d: .5, e: "x"`)))
	schema := compileSchema(f)
	f.Fuzz(func(t *testing.T, src []byte) {
		if _, err := Parse("limits.yaml", src); err != nil {
			return
		}
		if err, _ := judgedBySchema(schema, src); err != nil {
			t.Errorf("%v\n%s", err, src)
		}
	})
}

// TestSchemaHasAllFieldsAndBounds compares the schema with the fields that Parse reads, and with
// the constants that it holds them against.
func TestSchemaHasAllFieldsAndBounds(t *testing.T) {
	var s any
	suite.Must(t, json.Unmarshal([]byte(Schema()), &s))
	at := func(path string) any {
		here := s
		for word := range strings.SplitSeq(path, "/") {
			next, ok := here.(map[string]any)
			if !ok || next[word] == nil {
				t.Fatalf("the schema has nothing at %s", path)
			}
			here = next[word]
		}
		return here
	}
	for path, fields := range map[string][]string{
		"properties": documentFields, "$defs/limit/properties": limitFields,
		"properties/regions/additionalProperties/properties": regionFields,
		"properties/domains/items/properties":                domainFields,
		"properties/exempt/items/properties":                 exemptionFields,
		"$defs/entries/items/properties":                     entryFields,
		"$defs/limit/properties/assign/properties":           assignFields,
	} {
		var got []string
		for name := range at(path).(map[string]any) {
			got = append(got, name)
		}
		want := slices.Sorted(slices.Values(fields))
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s has the fields %q, want %q", path, got, want)
		}
	}
	const limit = "$defs/limit/properties/"
	for _, s := range settings {
		if s.usual != Unlimited && s.usual != "" && s.usual != (*Classes)(nil) && fmt.Sprint(at(limit+s.name+"/default")) != fmt.Sprint(s.usual) {
			t.Errorf("the schema's default of %s is not %v", s.name, s.usual)
		}
	}
	for path, want := range map[string]int64{
		"properties/version/maximum":                                        MaxVersion,
		"properties/regions/maxProperties":                                  MaxRegions,
		"properties/regions/additionalProperties/properties/weight/maximum": MaxWeight,
		"properties/domains/maxItems":                                       MaxDomainRules,
		"$defs/regionName/maxLength":                                        MaxNameBytes,
		"$defs/limitName/maxLength":                                         MaxNameBytes,
		"$defs/domainName/maxLength":                                        MaxNameBytes,
		"$defs/descriptorName/maxLength":                                    MaxNameBytes,
		"$defs/alias/maxLength":                                             MaxAliasBytes,
		"$defs/replaces/maxItems":                                           MaxReplaces,
		"$defs/metadata/maxProperties":                                      MaxMetadataValues,
		"$defs/entries/maxItems":                                            MaxEntries,
		"$defs/entries/items/properties/value/maxLength":                    MaxConditionText,
		limit + "key/maxItems":                                              MaxKeyNames,
		limit + "match/maxProperties":                                       MaxConditions,
		limit + "match/additionalProperties/maxLength":                      MaxConditionText,
		limit + "limit/maximum":                                             int64(MaxLimit),
		limit + "burst/maximum":                                             int64(MaxBurst),
		limit + "weights/additionalProperties/maximum":                      MaxWeight,
		limit + "borrowing_limit/maximum":                                   1_000_000,
		limit + "classes/maxProperties":                                     MaxClasses + 1,
	} {
		if got := at(path); got != float64(want) {
			t.Errorf("%s is %v, want %d", path, got, want)
		}
	}
	var kinds []any
	for _, k := range algorithms.Kinds {
		kinds = append(kinds, string(k))
	}
	if got := at(limit + "algorithm/enum").([]any); !slices.Equal(got, kinds) {
		t.Errorf("the algorithms are %q, want %q", got, kinds)
	}
	for path, text := range map[string]string{"$defs/regionName/pattern": regionNames.form.String(),
		"$defs/limitName/pattern":      limitNames.form.String(),
		"$defs/domainName/pattern":     domainNames.form.String(),
		"$defs/descriptorName/pattern": descriptorNames.form.String()} {
		if at(path) != text {
			t.Errorf("%s is %s, want %s", path, at(path), text)
		}
	}
}
