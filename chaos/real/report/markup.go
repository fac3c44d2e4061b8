package report

import (
	"fmt"
	"html"
	"strings"
)

// markup is HTML in which all that came from elsewhere is escaped.
type markup string

// writer writes HTML. It is plain code and no template, because a linker keeps every method of a program that runs
// templates: a quarter of quotad's binary.
type writer struct{ strings.Builder }

// add writes a piece of HTML. Each %s of it stands for a text, which is escaped, or for markup, which is not. It may
// stand between tags, and in the quotes of an attribute that is no link.
func (w *writer) add(piece string, values ...any) {
	for i, v := range values {
		switch v := v.(type) {
		case markup:
			values[i] = string(v)
		case string:
			values[i] = html.EscapeString(v)
		default:
			panic(fmt.Sprintf("a %T is neither text nor markup", v))
		}
	}
	fmt.Fprintf(w, piece, values...)
}

// maybe is add of a text, unless it is empty.
func (w *writer) maybe(piece, text string) {
	if text != "" {
		w.add(piece, text)
	}
}
