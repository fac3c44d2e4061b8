//go:build !race

package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// page is a page of the documentation.
type page struct {
	path   string // from the root of the repository, with slashes
	text   string
	fences []codeBlock
	prose  []line // lines that are in no fence
}

// line is a line of a page.
type line struct {
	number int
	text   string
}

// codeBlock is a fenced block. Its info string is a language and words, such as
// "yaml limits file=limits.yaml".
type codeBlock struct {
	page     *page
	number   int // line of the opening fence
	language string
	words    []string
	text     string
}

// file returns the name under which the block is written before commands of its page are run.
func (f codeBlock) file() (string, bool) {
	for _, word := range f.words {
		if name, ok := strings.CutPrefix(word, "file="); ok {
			return name, true
		}
	}
	return "", false
}

func (f codeBlock) at() string { return fmt.Sprintf("%s:%d", f.page.path, f.number) }

// repository is the path from this package to the root.
var repository = filepath.Join("..", "..")

// pages returns every page that readers are led to.
func pages(t *testing.T) []*page {
	t.Helper()
	paths := []string{"README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"}
	for _, folder := range []string{"docs", "deploy"} {
		err := fs.WalkDir(os.DirFS(repository), folder, func(at string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && path.Ext(at) == ".md" {
				paths = append(paths, at)
			}
			return err
		})
		suite.Must(t, err)
	}
	var all []*page
	for _, at := range paths {
		all = append(all, readPage(t, at))
	}
	return all
}

func readPage(t *testing.T, at string) *page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(at)))
	suite.Must(t, err)
	p, err := parsePage(at, string(text))
	suite.Must(t, err)
	return p
}

// parsePage finds the fenced blocks of a page. A fence may be indented, as in a list; its text
// loses that indentation.
func parsePage(at, text string) (*page, error) {
	p := &page{path: at, text: text}
	var open *codeBlock
	var indentation string
	for i, l := range strings.Split(text, "\n") {
		bare := strings.TrimLeft(l, " ")
		switch info, marks := strings.CutPrefix(bare, "```"); {
		case marks && open == nil:
			words := append(strings.Fields(info), "")
			open = &codeBlock{page: p, number: i + 1, language: words[0], words: words[1:]}
			indentation = l[:len(l)-len(bare)]
		case marks && strings.TrimSpace(info) == "":
			p.fences = append(p.fences, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(l, indentation) + "\n"
		default:
			p.prose = append(p.prose, line{i + 1, l})
		}
	}
	if open != nil {
		return nil, fmt.Errorf("%s: the block is not closed", open.at())
	}
	return p, nil
}

// mostReadmeLines bounds README.md, which is for people who have never seen quotad.
const mostReadmeLines = 200

func TestDocsReadmeIsShort(t *testing.T) {
	if n := strings.Count(readPage(t, "README.md").text, "\n"); n > mostReadmeLines {
		t.Errorf("README.md has %d lines, at most %d are wanted: move some of it to docs", n, mostReadmeLines)
	}
}

// longestLine is the longest line of prose. Rows of tables may be longer, and so may what programs
// print.
const longestLine = 100

func TestDocsLinesAreShort(t *testing.T) {
	for _, p := range pages(t) {
		if p.path == "docs/reference/cli.md" || strings.HasPrefix(p.path, "deploy/") {
			continue // the first is written by the code
		}
		for _, l := range p.prose {
			width, text := utf8.RuneCountInString(l.text), strings.TrimSpace(l.text)
			if width > longestLine && !strings.HasPrefix(text, "|") && !oneLink.MatchString(text) {
				t.Errorf("%s:%d has %d columns", p.path, l.number, width)
			}
			if strings.HasPrefix(l.text, "    ") && strings.TrimSpace(l.text) != "" &&
				!strings.HasPrefix(strings.TrimSpace(l.text), "- ") && isIndentedBlock(p, l) {
				t.Errorf("%s:%d: write blocks between fences, which say what they are", p.path, l.number)
			}
		}
	}
}

// isIndentedBlock reports whether an indented line begins a block of code: the line before it is
// empty, and it is not in a list.
func isIndentedBlock(p *page, l line) bool {
	lines := strings.Split(p.text, "\n")
	if l.number < 2 || lines[l.number-2] != "" {
		return false
	}
	for i := l.number - 2; i >= 0; i-- {
		switch before := lines[i]; {
		case before == "" || strings.HasPrefix(before, " "):
		default:
			return !listItem.MatchString(before)
		}
	}
	return true
}

// oneLink matches a line that has nothing but a link, which cannot be broken.
var oneLink = regexp.MustCompile(`^\[[^\]]*\]\([^)]*\)\S*$`)

var listItem = regexp.MustCompile(`^(-|\*|\d+\.) `)

var (
	heading    = regexp.MustCompile(`^#{1,6} +(.*?)\s*$`)
	linkTarget = regexp.MustCompile(`\]\(([^()\s]+(?:\([^()]*\)[^()\s]*)?)\)`)
	inlineCode = regexp.MustCompile("`[^`]+`")
)

// anchors returns the anchors that GitHub makes of a page's headings.
func (p *page) anchors() map[string]bool {
	all := map[string]bool{}
	for _, l := range p.prose {
		m := heading.FindStringSubmatch(l.text)
		if m == nil {
			continue
		}
		name, n := slug(m[1]), 0
		for unique := name; ; unique = fmt.Sprintf("%s-%d", name, n) {
			if !all[unique] {
				all[unique] = true
				break
			}
			n++
		}
	}
	return all
}

// slug returns the anchor of a heading: lower case, blanks as dashes, and of all else only letters,
// digits, dashes and underscores.
func slug(text string) string {
	text = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(text, "$1")
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, text)
}

// TestDocsLinksResolve: every relative link leads to a file or folder of the repository, and every
// anchor to a heading. Every page of docs can be reached from docs/README.md.
func TestDocsLinksResolve(t *testing.T) {
	all := map[string]*page{}
	for _, p := range pages(t) {
		all[p.path] = p
	}
	leadsTo := map[string][]string{}
	links := 0
	for _, p := range all {
		for _, l := range p.prose {
			text := inlineCode.ReplaceAllString(l.text, "")
			for _, m := range linkTarget.FindAllStringSubmatch(text, -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				links++
				to, problem := resolve(all, p, m[1])
				if problem != "" {
					t.Errorf("%s:%d: %s: %s", p.path, l.number, m[1], problem)
				}
				leadsTo[p.path] = append(leadsTo[p.path], to)
			}
		}
	}
	if links < 50 {
		t.Errorf("only %d links were found", links)
	}
	reached := map[string]bool{}
	for next := []string{"docs/README.md"}; len(next) > 0; next = next[1:] {
		if !reached[next[0]] {
			reached[next[0]] = true
			next = append(next, leadsTo[next[0]]...)
		}
	}
	for at := range all {
		if strings.HasPrefix(at, "docs/") && !reached[at] {
			t.Errorf("no link leads from docs/README.md to %s", at)
		}
	}
}

// resolve returns the path to which a link of a page leads, and what is wrong with it.
func resolve(all map[string]*page, p *page, link string) (to, problem string) {
	file, anchor, _ := strings.Cut(link, "#")
	to = p.path
	if file != "" {
		to = path.Join(path.Dir(p.path), file)
	}
	if _, err := os.Stat(filepath.Join(repository, filepath.FromSlash(to))); err != nil {
		return to, "there is no such file"
	}
	if anchor == "" {
		return to, ""
	}
	target, isPage := all[to]
	if !isPage {
		return to, "an anchor can only be in a page of the documentation"
	}
	if !target.anchors()[anchor] {
		return to, "no heading of that page has this anchor"
	}
	return to, ""
}

// languages are those of fenced blocks. Each but text and http is checked by a test.
var languages = []string{"console", "sh", "yaml", "go", "json", "http", "text"}

func TestDocsBlocksSayWhatTheyAre(t *testing.T) {
	for _, p := range pages(t) {
		for _, f := range p.fences {
			if !slices.Contains(languages, f.language) {
				t.Errorf("%s: %q is none of %s", f.at(), f.language, languages)
			}
		}
	}
}

func TestSlugsAreThoseOfGitHub(t *testing.T) {
	for text, want := range map[string]string{
		"What is promised, and what is not": "what-is-promised-and-what-is-not",
		"`/v1/check`":                       "v1check",
		"A [link](there.md) in it":          "a-link-in-it",
		"quotad limits bound":               "quotad-limits-bound",
		"node_file":                         "node_file",
	} {
		if got := slug(text); got != want {
			t.Errorf("%q has the anchor %q, want %q", text, got, want)
		}
	}
}
