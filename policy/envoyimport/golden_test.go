package envoyimport

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy"
	"github.com/quotad/quotad/policy/strictyaml"
)

var update = flag.Bool("update", false,
	"write what is made into testdata; read the difference before you keep it")

// TestMade compares documents and warnings with those of testdata/made.
func TestMade(t *testing.T) {
	testArchives(t, "made", func(t *testing.T, files []File, o Options) []txtar.File {
		made, err := Convert(files, o)
		suite.Must(t, err)
		checkMade(t, made)
		lines := ""
		for _, w := range made.Warnings {
			lines += w.String() + "\n"
		}
		got := []txtar.File{{Name: "document", Data: made.Document},
			{Name: "warnings", Data: []byte(lines)}}
		leftOut := ""
		for _, refused := range made.LeftOut {
			leftOut += refused.Name + "\n" + refused.Problems.Error() + "\n"
		}
		if leftOut != "" {
			got = append(got, txtar.File{Name: "left out", Data: []byte(leftOut)})
		}
		return got
	})
}

// TestRefused compares errors with those of testdata/refused.
func TestRefused(t *testing.T) {
	testArchives(t, "refused", func(t *testing.T, files []File, o Options) []txtar.File {
		made, err := Convert(files, o)
		if err == nil || made.Document != nil {
			t.Fatalf("error %v, document:\n%s", err, made.Document)
		}
		return []txtar.File{{Name: "errors", Data: []byte(err.Error() + "\n")}}
	})
}

// testArchives compares what make returns for the .yaml files of each archive with the other files
// of the archive. Lines of the comment that begin with "options:" set options.
func testArchives(t *testing.T, folder string,
	convert func(*testing.T, []File, Options) []txtar.File) {
	archives, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives found: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			suite.Must(t, err)
			files, want := split(a)
			got := convert(t, files, optionsOf(t, string(a.Comment)))
			if *update {
				a.Files = a.Files[:len(files)]
				a.Files = append(a.Files, got...)
				suite.Must(t, os.WriteFile(name, txtar.Format(a), 0o644))
				return
			}
			for _, f := range got {
				if string(f.Data) != want[f.Name] {
					t.Errorf("%s:\n%s\nwant:\n%s", f.Name, f.Data, want[f.Name])
				}
			}
		})
	}
}

// split returns the configuration files of an archive, which come first, and the text of the
// others.
func split(a *txtar.Archive) (files []File, others map[string]string) {
	others = map[string]string{}
	for _, f := range a.Files {
		if strings.HasSuffix(f.Name, ".yaml") {
			files = append(files, File{f.Name, f.Data})
		} else {
			others[f.Name] = string(f.Data)
		}
	}
	return files, others
}

func usualOptions() Options {
	return Options{Version: 1, Regions: []policy.Region{{Name: "us-east", Weight: 2},
		{Name: "eu-west", Weight: 1}}, Descriptors: policy.DecideApart}
}

func optionsOf(t *testing.T, comment string) Options {
	o := usualOptions()
	for line := range strings.Lines(comment) {
		words, found := strings.CutPrefix(line, "options:")
		if !found {
			continue
		}
		for _, word := range strings.Fields(words) {
			switch name, value, _ := strings.Cut(word, "="); name {
			case "timezone":
				o.Timezone = value
			case "merge":
				o.MergeDomains = true
			case "keep-going":
				o.KeepGoing = true
			case "together":
				o.Descriptors = policy.DecideTogether
			case "charge-always":
				o.ChargeAlways = strings.Split(value, ",")
			default:
				t.Fatalf("no option %s", word)
			}
		}
	}
	return o
}

// checkMade checks that the document has what the result says.
func checkMade(t *testing.T, made Result) {
	t.Helper()
	d, err := policy.Parse("document", made.Document)
	suite.Must(t, err)
	if made.Limits != len(d.Limits) || made.Exempt != len(d.Exempt) || made.Limits == 0 {
		t.Errorf("%d limits and %d exemptions, the document has %d and %d", made.Limits, made.Exempt,
			len(d.Limits), len(d.Exempt))
	}
}

// TestNothingIsLimited: a document needs a limit.
func TestNothingIsLimited(t *testing.T) {
	for _, text := range []string{"domain: a", "domain: a\ndescriptors:\n- key: b\n",
		"domain: a\ndescriptors: [{key: b, rate_limit: {unlimited: true}}]"} {
		_, err := Convert([]File{{"a.yaml", []byte(text)}}, usualOptions())
		if !errors.Is(err, ErrNoLimit) {
			t.Errorf("%q: error %v", text, err)
		}
	}
}

// TestKeepGoingWithNothing: when every file is left out, there is no document.
func TestKeepGoingWithNothing(t *testing.T) {
	o := usualOptions()
	o.KeepGoing = true
	made, err := Convert([]File{{"a.yaml", []byte("domain: a\nb: c\n")}, {"b.yaml", []byte("[")},
		{"c.yaml", []byte("domain: c")}}, o)
	problems, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || len(problems) != 2 || made.Document != nil {
		t.Errorf("error %v, document %s", err, made.Document)
	}
}

// TestPrevious: a document that means the same keeps its version, whatever its comments say, and
// one that means something else gets the next.
func TestPrevious(t *testing.T) {
	const text = "domain: a\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: %d}}]"
	convert := func(o Options, name string, limit int) *policy.Document {
		t.Helper()
		made, err := Convert([]File{{name, fmt.Appendf(nil, text, limit)}}, o)
		suite.Must(t, err)
		d, err := policy.Parse("document", made.Document)
		suite.Must(t, err)
		return d
	}
	o := usualOptions()
	o.Version = 7
	previous := convert(o, "a.yaml", 5)
	o.Version, o.Previous = 0, previous
	suite.Must(t, CheckOptions(o))
	if same := convert(o, "b.yaml", 5); same.Epoch() != previous.Epoch() {
		t.Errorf("the same has epoch %v, before it was %v", same.Epoch(), previous.Epoch())
	}
	if other := convert(o, "a.yaml", 6); other.Version != 8 {
		t.Errorf("another one has version %d", other.Version)
	}
	o.Regions = o.Regions[:1]
	if other := convert(o, "a.yaml", 5); other.Version != 8 {
		t.Errorf("one of other regions has version %d", other.Version)
	}
	o.Previous, o.Version = nil, policy.MaxVersion
	last := convert(o, "a.yaml", 5)
	o.Previous = last
	_, err := Convert([]File{{"a.yaml", fmt.Appendf(nil, text, 6)}}, o)
	if err == nil || !strings.Contains(err.Error(), "version: ") {
		t.Errorf("behind the last version: %v", err)
	}
}

// TestCheckOptions: options that no document can have are found without a configuration.
func TestCheckOptions(t *testing.T) {
	suite.Must(t, CheckOptions(usualOptions()))
	for want, change := range map[string]func(*Options){
		"version: 0 is out of range":        func(o *Options) { o.Version = 0 },
		"regions.us-east: given twice":      func(o *Options) { o.Regions = append(o.Regions, o.Regions[0]) },
		"regions.us-east.weight: 0 is out ": func(o *Options) { o.Regions[0].Weight = 0 },
		`"US" is not a valid name`:          func(o *Options) { o.Regions[0].Name = "US" },
		"regions: empty":                    func(o *Options) { o.Regions = nil },
	} {
		o := usualOptions()
		change(&o)
		if err := CheckOptions(o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// TestTooMuch: how much is read, and how much is reported, is bounded.
func TestTooMuch(t *testing.T) {
	text := []byte("domain: a\ndescriptors:\n" + strings.Repeat("- {key: k}\n", MaxDescriptors/2+1))
	_, err := Convert([]File{{"a.yaml", text}, {"b.yaml", text}}, usualOptions())
	problems, ok := errors.AsType[strictyaml.Errors](err)
	if !ok || len(problems) != 2*strictyaml.MaxErrors ||
		!strings.Contains(err.Error(), "b.yaml:10002:3: descriptors[9999]: more than 20000 descriptors") {
		t.Errorf("%d problems, %.200v", len(problems), err)
	}
	_, err = Convert([]File{{"a.yaml", make([]byte, MaxFileBytes+1)}}, usualOptions())
	if err == nil || !strings.Contains(err.Error(), "larger than 1 MiB") {
		t.Errorf("error %v", err)
	}
	limits := "domain: a\ndescriptors:\n"
	for i := range 11_000 {
		limits += fmt.Sprintf("- {key: k%d, rate_limit: {unit: day, requests_per_unit: 1}}\n", i)
	}
	_, err = Convert([]File{{"a.yaml", []byte(limits)}}, usualOptions())
	if err == nil || !strings.Contains(err.Error(), "and may have 1048576: import fewer files") {
		t.Errorf("error %v", err)
	}
}
