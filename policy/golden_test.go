package policy

import (
	"errors"
	"flag"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/strictyaml"
)

var update = flag.Bool("update", false,
	"write the errors and warnings found into testdata; read the difference before you keep it")

// TestInvalidDocuments compares the errors of every refused document of testdata/invalid with their
// whole expected text: position, field, problem and remedy.
func TestInvalidDocuments(t *testing.T) { testArchives(t, "invalid", "errors", checkInvalid) }

// TestWarnings compares the warnings of the documents of testdata/warned with their whole expected
// text, in order.
func TestWarnings(t *testing.T) { testArchives(t, "warned", "warnings", checkWarned) }

// testArchives compares what check finds in each document of a directory with the file beside it
// that says what it should find.
func testArchives(t *testing.T, dir, finding string, check func(*testing.T, []byte) string) {
	archives, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives found: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			cases := readArchive(t, name)
			checked := archive{comment: cases.comment}
			for _, f := range cases.files {
				title, kind := path.Split(f.name)
				if kind != "limits.yaml" {
					continue
				}
				want := cases.data(title + finding)
				got := want // if -run leaves the case out, it stays as it is
				t.Run(path.Clean(title), func(t *testing.T) {
					got = check(t, []byte(f.data))
					if !*update && got != want {
						t.Errorf("got:\n%s\nwant:\n%s", got, want)
					}
				})
				checked.files = append(checked.files, f, archived{title + finding, got})
			}
			if *update {
				checked.write(t, name)
			}
		})
	}
}

// checkInvalid parses a document that must be refused and returns its errors.
func checkInvalid(t *testing.T, src []byte) string {
	t.Helper()
	doc, err := Parse("limits.yaml", src)
	if err == nil {
		t.Fatal("the document was accepted")
	}
	if doc != nil {
		t.Error("a refused document was returned all the same")
	}
	checkErrors(t, src, err)
	return err.Error() + "\n"
}

// checkWarned parses a document that must be accepted and returns its warnings.
func checkWarned(t *testing.T, src []byte) string {
	t.Helper()
	doc, err := Parse("limits.yaml", src)
	suite.Must(t, err)
	checkWarnings(t, src, doc.Warnings())
	var text strings.Builder
	for _, w := range doc.Warnings() {
		text.WriteString(w.String() + "\n")
	}
	return text.String()
}

// checkWarnings checks for warnings what checkErrors checks for errors.
func checkWarnings(t *testing.T, src []byte, warnings []Warning) {
	t.Helper()
	if len(warnings) == 0 {
		return
	}
	errs := make(strictyaml.Errors, len(warnings))
	for i, w := range warnings {
		if w.Path == "" {
			t.Errorf("warning %q names no field", w)
		}
		errs[i] = (*strictyaml.Error)(&w)
	}
	checkErrors(t, src, errs)
}

// checkErrors checks that the errors of a refusal are complete, in order, and at places that exist.
func checkErrors(t *testing.T, src []byte, err error) {
	t.Helper()
	var errs strictyaml.Errors
	if !errors.As(err, &errs) || len(errs) == 0 {
		t.Fatalf("error %v is no Errors", err)
	}
	var one *strictyaml.Error
	if !errors.As(err, &one) || one != errs[0] {
		t.Errorf("errors.As finds %v, not the first problem", one)
	}
	var lengths []int // lengths of the lines, in characters
	for line := range strings.SplitSeq(string(src), "\n") {
		lengths = append(lengths, len([]rune(line)))
	}
	for i, e := range errs {
		if e.Problem == "" || e.Mend == "" || e.Pos.File == "" {
			t.Errorf("incomplete error %#v", e)
		}
		if strings.Contains(e.Error(), "\n") {
			t.Errorf("error %q takes more than a line", e)
		}
		if e.Pos.Line < 1 || e.Pos.Line > len(lengths) || e.Pos.Column < 1 {
			t.Errorf("%s is no place in a file of %d lines", e.Pos, len(lengths))
		} else if length := lengths[e.Pos.Line-1]; e.Pos.Column > length+1 {
			t.Errorf("%s is no place in a line of %d characters", e.Pos, length)
		}
		if i > 0 && (errs[i-1].Pos.Line > e.Pos.Line ||
			errs[i-1].Pos.Line == e.Pos.Line && errs[i-1].Pos.Column > e.Pos.Column) {
			t.Errorf("%s comes after %s", e.Pos, errs[i-1].Pos)
		}
	}
}
