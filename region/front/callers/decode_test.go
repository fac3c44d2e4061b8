package callers

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/chaos/lab/fronts"
	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
	"github.com/quotad/quotad/region/decide/admit"
)

const rangeWords = "cost: must be a whole number of units from 1 to 2251799813685248"

// costWords is what is wrong with a cost that is not written as one.
const costWords = "must be a whole number written with digits alone, without quotes, fraction or exponent: 1000, not 1e3"

// TestDecodeCost lists numbers that must not be accepted.
func TestDecodeCost(t *testing.T) {
	const words = "cost: " + costWords
	const syntax = "body: is not one JSON value: "
	for _, c := range []struct {
		cost string
		want quantity.Units
		err  string // prefix
	}{
		{"1", 1, ""},
		{"1000", 1000, ""},
		{"2147483648", 1 << 31, ""},
		{"2251799813685248", 1 << 51, ""},
		{"2251799813685249", 0, rangeWords},
		{"9007199254740991", 0, rangeWords},
		{"9007199254740993", 0, rangeWords},
		{"9223372036854775807", 0, rangeWords},
		{"9223372036854775808", 0, rangeWords},
		{"18446744073709551617", 0, rangeWords}, // 1 in 64 bits
		{"-18446744073709551615", 0, rangeWords},
		{"0", 0, rangeWords},
		{"-0", 0, rangeWords},
		{"-1", 0, rangeWords},
		{"1.5", 0, words},
		{"1.0", 0, words},
		{"-0.0", 0, words},
		{"1e3", 0, words},
		{"1E3", 0, words},
		{"1e309", 0, words},
		{"1e-400", 0, words},
		{`"1"`, 0, words},
		{"true", 0, words},
		{"null", 0, words},
		{"[1]", 0, words},
		{"{}", 0, words},
		{"01", 0, syntax},
		{"+5", 0, syntax},
		{"0x10", 0, syntax},
		{"1_000", 0, syntax},
		{"NaN", 0, syntax},
		{"Infinity", 0, syntax},
		{"", 0, syntax},
	} {
		t.Run(c.cost, func(t *testing.T) {
			q, err := decodeCheck([]byte(`{"domain":"api","cost":` + c.cost + `}`))
			wantDecoded(t, q, err, admit.Request{Domain: "api", Cost: c.want}, c.err)
		})
	}
}

func wantDecoded(t *testing.T, got admit.Request, err error, want admit.Request, problem string) {
	t.Helper()
	var field *invalid.Field
	switch {
	case problem == "" && err != nil:
		t.Errorf("refused: %v", err)
	case problem == "" && !reflect.DeepEqual(got, want):
		t.Errorf("read as %+v, want %+v", got, want)
	case problem != "" && err == nil:
		t.Errorf("accepted as %+v, want an error that begins with %q", got, problem)
	case problem != "" && (!errors.As(err, &field) || !strings.HasPrefix(err.Error(), problem)):
		t.Errorf("refused with %q, want a field error that begins with %q", err, problem)
	}
}

func TestDecodeRequest(t *testing.T) {
	account := func(v string) map[string]string { return map[string]string{"account": v} }
	manyNames := func(n int) string {
		var b strings.Builder
		for i := range n {
			b.WriteString(`"d` + strconv.Itoa(i) + `":"v",`)
		}
		return `{"domain":"api","descriptors":{` + strings.TrimSuffix(b.String(), ",") + `}}`
	}
	for _, c := range []struct {
		name, body  string
		descriptors map[string]string
		err         string
	}{
		{"no descriptors", `{"domain":"api"}`, nil, ""},
		{"empty descriptors", `{"domain":"api","descriptors":{}}`, map[string]string{}, ""},
		{"blanks", " {\n\t\"domain\" : \"api\" , \"descriptors\" : { \"account\" : \"42\" } }\r\n",
			account("42"), ""},
		{"odd characters", `{"domain":"api","descriptors":{"account":"}{*\u0000\r\n\u202e\\ud800"}}`, account("}{*\x00\r\n\u202e\\ud800"), ""},
		{"an escaped pair", `{"domain":"api","descriptors":{"account":"\uD83D\ude00"}}`,
			account("😀"), ""},
		{"the replacement character itself", `{"domain":"api","descriptors":{"account":"\ufffd�"}}`,
			account("��"), ""},
		{"names escaped", `{"\u0064omain":"api","descriptors":{"\u0061ccount":"42"}}`,
			account("42"), ""},
		{"composed is not decomposed",
			"{\"domain\":\"api\",\"descriptors\":{\"\u00e9\":\"1\",\"e\u0301\":\"2\"}}",
			map[string]string{"\u00e9": "1", "e\u0301": "2"}, ""},

		{"empty", ``, nil, "body: is not one JSON value: unexpected end"},
		{"cut short", `{"domain":"api"`, nil, "body: is not one JSON value: unexpected end"},
		{"trailing text", `{"domain":"api"} x`, nil,
			"body: is not one JSON value: invalid character 'x' after top-level value, at byte 18"},
		{"two values", `{"domain":"api"}{}`, nil,
			"body: is not one JSON value: invalid character '{' after top-level value"},
		{"trailing comma", `{"domain":"api",}`, nil, "body: is not one JSON value: "},
		{"comment", `{"domain":"api"/**/}`, nil, "body: is not one JSON value: "},
		{"byte order mark", "\ufeff{\"domain\":\"api\"}", nil, "body: is not one JSON value: "},
		{"deep", strings.Repeat("[", 20000), nil, "body: is not one JSON value: "},
		{"a list", `[{"domain":"api"}]`, nil, "body: must be a JSON object"},
		{"null", `null`, nil, "body: must be a JSON object"},
		{"unknown field", `{"domain":"api","hits\n":1}`, nil,
			`body: has the unknown field "hits\n"; there are`},
		{"long unknown field", `{"domain":"api","` + strings.Repeat("é", 60) + `":1}`, nil,
			`body: has the unknown field "` + strings.Repeat(`\u00e9`, 32) + `"...;`},
		{"field in capitals", `{"Domain":"api"}`, nil, `body: has the unknown field "Domain"`},
		{"field twice", `{"domain":"api","domain":"api"}`, nil, `body: has "domain" twice`},
		{"field twice by escape", `{"domain":"api","doma\u0069n":"other"}`, nil,
			`body: has "domain" twice`},
		{"another's receipt", `{"domain":"api","receipt":"-Rc_9"}`, nil,
			"receipt: must be true or false, without quotes"},
		{"receipt of a number", `{"domain":"api","receipt":1}`, nil,
			"receipt: must be true or false"},
		{"receipt null", `{"domain":"api","receipt":null}`, nil, "receipt: must be true or false"},
		{"request_id of a number", `{"domain":"api","request_id":7}`, nil,
			"request_id: must be a JSON string"},
		{"request_id twice", `{"domain":"api","request_id":"a","request_id":"b"}`, nil,
			`body: has "request_id" twice`},
		{"half a character in request_id", `{"domain":"api","request_id":"\ud800"}`, nil,
			"request_id: has half a character"},
		{"long request_id", `{"domain":"api","request_id":"` + strings.Repeat("x", 129) + `"}`, nil,
			"request_id: is longer than 128 bytes"},
		{"no domain", `{"descriptors":{}}`, nil, "domain: is missing"},
		{"domain of a number", `{"domain":1}`, nil, "domain: must be a JSON string"},
		{"domain null", `{"domain":null}`, nil, "domain: must be a JSON string"},
		{"descriptors a list", `{"domain":"api","descriptors":["account"]}`, nil,
			"descriptors: must be a JSON object"},
		{"descriptors null", `{"domain":"api","descriptors":null}`, nil,
			"descriptors: must be a JSON object"},
		{"descriptor of a number", `{"domain":"api","descriptors":{"account":42}}`, nil,
			"descriptors.account: must be a JSON string"},
		{"descriptor of an object", `{"domain":"api","descriptors":{"account":{"id":"42"}}}`, nil,
			"descriptors.account: must be a JSON string"},
		{"descriptor twice", `{"domain":"api","descriptors":{"account":"1","account":"2"}}`, nil,
			`descriptors: has "account" twice`},
		{"descriptor without a name", `{"domain":"api","descriptors":{"":"1"}}`, nil,
			"descriptors: has a name that is empty"},
		{"too many descriptors", manyNames(17), nil, "descriptors: has too many entries"},
		{"far too many descriptors", manyNames(5000), nil, "descriptors: has too many entries"},
		{"long descriptor", `{"domain":"api","descriptors":{"account":"` + strings.Repeat("x",
			257) + `"}}`, nil, "descriptors.account: is longer than 256 bytes"},
		{"not UTF-8", "{\"domain\":\"api\",\"descriptors\":{\"account\":\"\xff\"}}", nil,
			"descriptors.account: is not valid UTF-8"},
		{"a name that is not UTF-8", "{\"domain\":\"api\",\"descriptors\":{\"\xff\":\"1\"}}", nil,
			"descriptors: is not valid UTF-8"},
		{"a field that is not UTF-8", "{\"domain\xff\":\"api\"}", nil, "body: is not valid UTF-8"},
		{"bytes that are not UTF-8 outside of texts", "{\"domain\":\"api\"\xff}", nil,
			"body: is not one JSON value: "},
		{"a surrogate in UTF-8", "{\"domain\":\"\xed\xa0\x80\"}", nil,
			"domain: is not valid UTF-8"},
		{"high surrogate alone", `{"domain":"api","descriptors":{"account":"\ud800"}}`, nil,
			"descriptors.account: has half a character"},
		{"low surrogate alone", `{"domain":"api","descriptors":{"account":"\udc00"}}`, nil,
			"descriptors.account: has half a character"},
		{"high surrogate before text", `{"domain":"api","descriptors":{"account":"\ud800x"}}`, nil,
			"descriptors.account: has half a character"},
		{"surrogates the wrong way round",
			`{"domain":"api","descriptors":{"account":"\ude00\ud83d"}}`, nil,
			"descriptors.account: has half a character"},
		{"two high surrogates", `{"domain":"api","descriptors":{"account":"\ud83d\ud83d\ude00"}}`,
			nil, "descriptors.account: has half a character"},
		{"surrogate in a name", `{"domain":"api","descriptors":{"\ud800":"1"}}`, nil,
			"descriptors: has half a character"},
	} {
		t.Run(c.name, func(t *testing.T) {
			q, err := decodeCheck([]byte(c.body))
			wantDecoded(t, q, err, admit.Request{Domain: "api", Descriptors: c.descriptors,
				Cost: 1}, c.err)
		})
	}
}

// encode writes a request as any client would.
func encode(q admit.Request) []byte {
	m := map[string]any{"domain": q.Domain, "cost": int64(q.Cost)}
	if q.Descriptors != nil {
		m["descriptors"] = q.Descriptors
	}
	if q.ID != "" {
		m["request_id"] = q.ID
	}
	if q.Receipt {
		m["receipt"] = true
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

// same reports whether two requests are equal. No descriptors equal an empty list of them.
func same(a, b admit.Request) bool {
	return a.Domain == b.Domain && a.Cost == b.Cost && a.ID == b.ID && a.Receipt == b.Receipt &&
		maps.Equal(a.Descriptors, b.Descriptors)
}

// TestDecodeEncoded: every valid request that a client encodes is decoded to the same request.
func TestDecodeEncoded(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		q := admit.Request{
			Domain: rapid.StringN(1, 15, 63).Draw(t, "domain"),
			Descriptors: rapid.MapOfN(rapid.StringN(1, 30, 128), rapid.StringN(0, 60, 256), 0,
				16).Draw(t, "descriptors"),
			Cost:    quantity.Units(rapid.Int64Range(1, 1<<51).Draw(t, "cost")),
			ID:      rapid.StringN(0, 30, 128).Draw(t, "id"),
			Receipt: rapid.Bool().Draw(t, "receipt"),
		}
		got, err := decodeCheck(encode(q))
		if err != nil || !same(got, q) {
			t.Fatalf("%s is read as %+v, %v", encode(q), got, err)
		}
	})
}

// FuzzDecodeCheck: the decoder never panics. What it accepts is valid, encodes to the same request
// again, and is what encoding/json reads, which is more lenient.
func FuzzDecodeCheck(f *testing.F) {
	for _, seed := range []string{fronts.Request, `{"domain":"api"}`,
		`{"domain":"\ud83d\ude00","cost":1}`, `{"domain":"api","domain":"b"}`,
		`{"domain":"api","cost":1e3}`, `{"domain":"\ud800"}`,
		`{"domain":"api","descriptors":{"a":"1","\u0061":"2"}}`, "[]", "\"\\u", "{\"\xff\":1}",
		`{"domain":"api","request_id":"r1","receipt":true}`,
		`{"domain":"api","request_id":"\ud800"}`, `{"domain":"api","receipt":"true"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		q, err := decodeCheck(body)
		if err != nil {
			var field *invalid.Field
			if !errors.As(err, &field) {
				t.Fatalf("%q is refused with %T: %v", body, err, err)
			}
			return
		}
		if err := q.Validate(); err != nil {
			t.Fatalf("%q is accepted, and invalid: %v", body, err)
		}
		again, err := decodeCheck(encode(q))
		if err != nil || !same(again, q) {
			t.Fatalf("%q is %+v, and encoded again %+v, %v", body, q, again, err)
		}
		lenient := struct {
			Domain      string
			Descriptors map[string]string
			Cost        json.Number
			RequestID   string `json:"request_id"`
			Receipt     bool
		}{Cost: "1"}
		if err := json.Unmarshal(body, &lenient); err != nil {
			t.Fatalf("%q is accepted here and not by encoding/json: %v", body, err)
		}
		units, err := lenient.Cost.Int64()
		read := admit.Request{Domain: lenient.Domain, Descriptors: lenient.Descriptors,
			Cost: quantity.Units(units), ID: lenient.RequestID, Receipt: lenient.Receipt}
		if err != nil || !same(q, read) {
			t.Fatalf("%q is %+v here and %+v for encoding/json", body, q, lenient)
		}
	})
}
