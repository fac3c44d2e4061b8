package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
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
		return nil, invalid.Fieldf(WholeBody, "is not one JSON value: %v, at byte %d", syntax,
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
		return nil, nil, invalid.Fieldf(WholeBody, "is not one JSON value")
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
		return invalid.Fieldf(field, "must be a JSON object")
	}
	seen := map[string]bool{}
	for d.tokens.More() {
		name, err := d.Text(field)
		if err != nil {
			return err
		}
		if seen[name] {
			return invalid.Fieldf(field, "has %s twice", Quote(name))
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
			return invalid.Fieldf(whole, "has the unknown field %s; %s", Quote(name), thereAre(fields))
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
		return invalid.Fieldf(field, "must be a JSON list")
	}
	for d.tokens.More() {
		var text json.RawMessage
		if err := d.tokens.Decode(&text); err != nil {
			return invalid.Fieldf(WholeBody, "is not one JSON value")
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
		return "", invalid.Fieldf(field, "must be a JSON string")
	}
	if !utf8.Valid(raw) {
		return "", invalid.Fieldf(field, "is not valid UTF-8")
	}
	if !wholeCharacters(raw) {
		return "", invalid.Fieldf(field, `has half a character (a \u escape of a lone surrogate)`)
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
		return false, invalid.Fieldf(field, "must be true or false, without quotes")
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
		return 0, invalid.Fieldf(field, costWords)
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

// MaxBodyBytes bounds the body of a request, but for a batch.
const MaxBodyBytes = 64 << 10

const wantJSON = "send the request with Content-Type: application/json, in UTF-8"

// Whether a request must say that its body is JSON.
const SaysJSON, AnyType = true, false

// ReadBody reads the JSON body of a request, of at most the given bytes.
func ReadBody[T any](w http.ResponseWriter, r *http.Request, typed bool, most int64,
	decode func([]byte) (T, error)) (q T, err error) {
	if typed && !isJSON(r.Header.Values("Content-Type")) {
		return q, Refuse(http.StatusUnsupportedMediaType, wantJSON)
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	if err != nil {
		return q, unreadable(err)
	}
	return decode(body)
}

// Answer reads a request that comes as JSON, has it done, and writes what came of it as JSON. ctx knows
// where the request came from.
func Answer[Q any](w http.ResponseWriter, r *http.Request, decode func([]byte) (Q, error),
	do func(ctx context.Context, q Q) (any, error)) {
	q, err := ReadBody(w, r, SaysJSON, MaxBodyBytes, decode)
	var done any
	if err == nil {
		done, err = do(WithAct(r), q)
	}
	Reply(w, done, err)
}

// unreadable returns the error for a body that could not be read. It was too large, too slow, or
// not as its headers say, and each is the caller's fault. A caller that has gone reads no answer.
func unreadable(err error) error {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) || errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("read the body: %w", err)
	}
	return invalid.Fieldf(WholeBody, "is not whole, or its chunks are malformed; send as many bytes as Content-Length says, or chunks as HTTP/1.1 has them")
}

// isJSON accepts application/json without a charset or in UTF-8. It refuses a missing content type,
// because pages of other sites can send that without the browser asking the node first.
func isJSON(values []string) bool {
	if len(values) != 1 {
		return false
	}
	kind, params, err := mime.ParseMediaType(values[0])
	charset, given := params["charset"]
	return err == nil && kind == "application/json" &&
		(!given || strings.EqualFold(charset, "utf-8"))
}
