package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
)

const (
	costWords = "must be a whole number written with digits alone, without quotes, fraction or exponent: 1000, not 1e3"
	// WholeBody is the field of an error that concerns no single field.
	WholeBody = "body"
)

// Decoder reads a body that is JSON, one name or value after the other. It is stricter than
// encoding/json, because two readers of one text must not see different requests: names are spelled
// exactly, none is unknown or given twice, a string means the same bytes to every reader, and a cost
// is never converted to a float.
type Decoder struct {
	body   []byte
	tokens *jsontext.Decoder
}

// Duplicate names are found by what reads an object.
var (
	strict  = []jsontext.Options{jsontext.AllowDuplicateNames(true)}
	lenient = append(slices.Clone(strict), jsontext.AllowInvalidUTF8(true))
)

// NewDecoder returns a decoder of a body, which must be one JSON value and nothing more.
func NewDecoder(body []byte) (*Decoder, error) {
	if err := oneValue(body); err != nil {
		return nil, err
	}
	return newDecoder(body, strict), nil
}

// oneValue returns an error for a body that is not one JSON value. Whether its strings are UTF-8 is
// told where they are read.
func oneValue(body []byte) error {
	if jsontext.Value(body).IsValid(lenient...) {
		return nil
	}
	var value json.RawMessage
	if syntax, ok := errors.AsType[*json.SyntaxError](json.Unmarshal(body, &value)); ok {
		return invalid.Fieldf(WholeBody, "is not one JSON value: %v, at byte %d", syntax, syntax.Offset)
	}
	return invalid.Fieldf(WholeBody, "is not one JSON value")
}

func newDecoder(body []byte, how []jsontext.Options) *Decoder {
	return &Decoder{body, jsontext.NewDecoder(bytes.NewBuffer(body), how...)}
}

// next returns the next name or value, which is there until another one is read. field is what an
// error concerns.
func (d *Decoder) next(field string) (jsontext.Value, error) {
	v, err := d.tokens.ReadValue()
	switch {
	case err == nil:
		return v, nil
	case utf8.Valid(d.body):
		return nil, invalid.Fieldf(field, `has half a character (a \u escape of a lone surrogate)`)
	}
	return nil, invalid.Fieldf(field, "is not valid UTF-8")
}

// opens reads the beginning of an object or a list.
func (d *Decoder) opens(kind jsontext.Kind, field, what string) error {
	if d.tokens.PeekKind() != kind {
		return invalid.Fieldf(field, "must be a JSON %s", what)
	}
	_, err := d.tokens.ReadToken()
	return err
}

// more reports whether an object or a list has another name or value, and reads its end if not.
func (d *Decoder) more() bool {
	switch d.tokens.PeekKind() {
	case '}', ']':
		_, _ = d.tokens.ReadToken() // NewDecoder has seen it
		return false
	}
	return true
}

// Fields reads an object that has only the given fields, and calls member for each to read the value.
// whole is the field of an error that concerns the object.
func (d *Decoder) Fields(whole string, fields []string, member func(name string) error) error {
	if err := d.opens('{', whole, "object"); err != nil {
		return err
	}
	var seen uint64 // of the first 64 fields
	for d.more() {
		v, err := d.next(whole)
		if err != nil {
			return err
		}
		i := slices.IndexFunc(fields, func(name string) bool { return string(v[1:len(v)-1]) == name })
		if i < 0 {
			i = slices.Index(fields, text(v)) // it may be written with escapes
		}
		switch {
		case i < 0:
			return invalid.Fieldf(whole, "has the unknown field %s; %s", Quote(text(v)), thereAre(fields))
		case seen>>i&1 == 1:
			return invalid.Fieldf(whole, "has %s twice", Quote(fields[i]))
		}
		seen |= 1 << i
		if err := member(fields[i]); err != nil {
			return err
		}
	}
	return nil
}

// Texts reads an object of strings.
func (d *Decoder) Texts(field string) (map[string]string, error) {
	if err := d.opens('{', field, "object"); err != nil {
		return nil, err
	}
	all := map[string]string{}
	for d.more() {
		v, err := d.next(field)
		if err != nil {
			return nil, err
		}
		name := text(v)
		if _, twice := all[name]; twice {
			return nil, invalid.Fieldf(field, "has %s twice", Quote(name))
		}
		if all[name], err = d.Text(name); err != nil {
			err.(*invalid.Field).Name = field + "." + name
			return nil, err
		}
	}
	return all, nil
}

// Text reads a string.
func (d *Decoder) Text(field string) (string, error) {
	v, err := d.next(field)
	if err != nil {
		return "", err
	}
	if v.Kind() != '"' {
		return "", invalid.Fieldf(field, "must be a JSON string")
	}
	return text(v), nil
}

// text returns what a JSON string says, which is valid.
func text(v jsontext.Value) string {
	if !bytes.ContainsRune(v, '\\') {
		return string(v[1 : len(v)-1])
	}
	plain, _ := jsontext.AppendUnquote(nil, v)
	return string(plain)
}

// Truth reads true or false.
func (d *Decoder) Truth(field string) (bool, error) {
	v, err := d.next(field)
	if err != nil {
		return false, err
	}
	if kind := v.Kind(); kind != 't' && kind != 'f' {
		return false, invalid.Fieldf(field, "must be true or false, without quotes")
	}
	return v.Kind() == 't', nil
}

// Units reads a number of units. Validate checks the range.
func (d *Decoder) Units(field string) (quantity.Units, error) {
	v, err := d.next(field)
	if err != nil {
		return 0, err
	}
	if v.Kind() != '0' || bytes.ContainsAny(v, ".eE") {
		return 0, invalid.Fieldf(field, costWords)
	}
	// A JSON number without these characters fails to parse only if it is beyond int64. ParseInt
	// then returns the nearest int64, which is out of range as well.
	units, _ := strconv.ParseInt(string(v), 10, 64)
	return quantity.Units(units), nil
}

// Decode reads a JSON object that has only the given fields, and calls member to read each.
func Decode(body []byte, fields []string, member func(d *Decoder, name string) error) error {
	d, err := NewDecoder(body)
	if err != nil {
		return err
	}
	return d.Fields(WholeBody, fields, func(name string) error { return member(d, name) })
}

// DecodeList reads a JSON object that has only one field, a list, and calls element with a decoder of
// each of its values. What is wrong within a value is told where that is read.
func DecodeList(body []byte, field string, element func(d *Decoder) error) error {
	if err := oneValue(body); err != nil {
		return err
	}
	d := newDecoder(body, lenient)
	return d.Fields(WholeBody, []string{field}, func(string) error {
		if err := d.opens('[', field, "list"); err != nil {
			return err
		}
		for d.more() {
			v, err := d.next(field)
			if err == nil {
				err = element(newDecoder(v, strict))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// thereAre lists names: "there are a, b and c".
func thereAre(names []string) string {
	last := len(names) - 1
	if last == 0 {
		return "there is only " + names[0]
	}
	return "there are " + strings.Join(names[:last], ", ") + " and " + names[last]
}
