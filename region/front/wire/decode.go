package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/decide/admit"
)

const (
	costWords = "must be a whole number written with digits alone, without quotes, fraction or exponent: 1000, not 1e3"
	// WholeBody is the field of an error that concerns no single field.
	WholeBody = "body"
)

// Decoder reads a body that is JSON token by token.
type Decoder struct {
	body   []byte
	tokens *json.Decoder
}

// NewDecoder returns a decoder of a body, which must be one JSON value and nothing more. That strings
// are UTF-8 is checked where they are read.
func NewDecoder(body []byte) (*Decoder, error) {
	var syntax *json.SyntaxError
	var value json.RawMessage
	if err := json.Unmarshal(body, &value); errors.As(err, &syntax) {
		return nil, admit.Wrong(WholeBody, "is not one JSON value: %v, at byte %d", syntax,
			syntax.Offset)
	}
	return newDecoder(body), nil
}

func newDecoder(body []byte) *Decoder {
	d := &Decoder{body: body, tokens: json.NewDecoder(bytes.NewReader(body))}
	d.tokens.UseNumber()
	return d
}

// token returns the next token and its text, which may begin with blanks and punctuation.
func (d *Decoder) token() (json.Token, []byte, error) {
	start := d.tokens.InputOffset()
	t, err := d.tokens.Token()
	if err != nil {
		return nil, nil, &admit.FieldError{Field: WholeBody, Problem: "is not one JSON value"}
	}
	return t, d.body[start:d.tokens.InputOffset()], nil
}

// object reads an object, and calls member for each name to read the value.
func (d *Decoder) object(field string, member func(name string) error) error {
	t, _, err := d.token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return &admit.FieldError{Field: field, Problem: "must be a JSON object"}
	}
	seen := map[string]bool{}
	for d.tokens.More() {
		name, err := d.Text(field)
		if err != nil {
			return err
		}
		if seen[name] {
			return &admit.FieldError{Field: field, Problem: "has " + Quote(name) + " twice"}
		}
		seen[name] = true
		if err := member(name); err != nil {
			return err
		}
	}
	_, _, err = d.token()
	return err
}

// Fields reads an object that has only the given fields, and calls member for each. It is stricter
// than encoding/json, because two readers of one text must not see different requests. Names are
// spelled exactly, none is unknown or given twice, a string means the same bytes to every reader,
// and a cost is never converted to a float.
func (d *Decoder) Fields(whole string, fields []string, member func(name string) error) error {
	return d.object(whole, func(name string) error {
		if !slices.Contains(fields, name) {
			return admit.Wrong(whole, "has the unknown field %s; %s", Quote(name), thereAre(fields))
		}
		return member(name)
	})
}

// List reads a list, and calls element to read each value.
func (d *Decoder) List(field string, element func(d *Decoder) error) error {
	t, _, err := d.token()
	if err != nil {
		return err
	}
	if t != json.Delim('[') {
		return &admit.FieldError{Field: field, Problem: "must be a JSON list"}
	}
	for d.tokens.More() {
		var text json.RawMessage
		if err := d.tokens.Decode(&text); err != nil {
			return &admit.FieldError{Field: WholeBody, Problem: "is not one JSON value"}
		}
		if err := element(newDecoder(text)); err != nil {
			return err
		}
	}
	_, _, err = d.token()
	return err
}

// Texts reads an object of strings.
func (d *Decoder) Texts(field string) (map[string]string, error) {
	all := map[string]string{}
	return all, d.object(field, func(name string) (err error) {
		all[name], err = d.Text(field + "." + name)
		return err
	})
}

// Text reads a string.
func (d *Decoder) Text(field string) (string, error) {
	t, raw, err := d.token()
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", &admit.FieldError{Field: field, Problem: "must be a JSON string"}
	}
	if !utf8.Valid(raw) {
		return "", &admit.FieldError{Field: field, Problem: "is not valid UTF-8"}
	}
	if !wholeCharacters(raw) {
		return "", admit.Wrong(field, `has half a character (a \u escape of a lone surrogate)`)
	}
	return s, nil
}

// Truth reads true or false.
func (d *Decoder) Truth(field string) (bool, error) {
	t, _, err := d.token()
	if err != nil {
		return false, err
	}
	b, ok := t.(bool)
	if !ok {
		return false, admit.Wrong(field, "must be true or false, without quotes")
	}
	return b, nil
}

// Units reads a number of units. Validate checks the range.
func (d *Decoder) Units(field string) (quantity.Units, error) {
	t, _, err := d.token()
	if err != nil {
		return 0, err
	}
	n, ok := t.(json.Number)
	if !ok || strings.ContainsAny(n.String(), ".eE") {
		return 0, &admit.FieldError{Field: field, Problem: costWords}
	}
	// A JSON number without these characters fails to parse only if it is beyond int64. ParseInt
	// then returns the nearest int64, which is out of range as well.
	units, _ := strconv.ParseInt(n.String(), 10, 64)
	return quantity.Units(units), nil
}

// wholeCharacters reports whether the \u escapes of surrogates in the text of a JSON string come in
// pairs. Decoding would turn all others into U+FFFD, so that different keys would become the same.
func wholeCharacters(text []byte) bool {
	var high rune // a high surrogate whose low one is to come
	for len(text) > 0 {
		unit, size := nextUnit(text)
		paired := high != 0 && utf16.DecodeRune(high, unit) != utf8.RuneError
		switch {
		case paired:
			high = 0
		case high != 0, utf16.IsSurrogate(unit) && unit >= 0xdc00:
			return false
		case utf16.IsSurrogate(unit):
			high = unit
		}
		text = text[size:]
	}
	return high == 0
}

// nextUnit returns the UTF-16 unit of a leading \u escape, or 0 for any other character, and the
// size in bytes.
func nextUnit(text []byte) (unit rune, size int) {
	switch {
	case text[0] != '\\' || len(text) < 2:
		return 0, 1
	case text[1] != 'u' || len(text) < 6:
		return 0, 2
	}
	n, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return 0, 2
	}
	return rune(n), 6
}

// Decode reads a JSON object that has only the given fields, and calls member to read each.
func Decode(body []byte, fields []string, member func(d *Decoder, name string) error) error {
	d, err := NewDecoder(body)
	if err != nil {
		return err
	}
	return d.Fields(WholeBody, fields, func(name string) error { return member(d, name) })
}

// thereAre lists names: "there are a, b and c".
func thereAre(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "there is only " + names[0]
	}
	return "there are " + strings.Join(names[:last], ", ") + " and " + names[last]
}
