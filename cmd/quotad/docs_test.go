package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
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

func (f codeBlock) at() string { return fmt.Sprintf("%s:%d", f.page.path, f.number) }

// repository is the path from this package to the root.
var repository = filepath.Join("..", "..")

// pages returns every page that readers are led to.
func pages(t *testing.T) []*page {
	t.Helper()
	paths := []string{"README.md"}
	for _, folder := range []string{"docs", "deploy"} {
		err := fs.WalkDir(os.DirFS(repository), folder, func(at string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && path.Ext(at) == ".md" {
				paths = append(paths, at)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	p, err := parsePage(at, string(text))
	if err != nil {
		t.Fatal(err)
	}
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
