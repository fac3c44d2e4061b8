package admit

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/base/invalid"
)

func TestValidate(t *testing.T) {
	with := func(change func(*Request)) Request {
		q := request("a")
		change(&q)
		return q
	}
	cost := func(units quantity.Units) Request { return with(func(q *Request) { q.Cost = units }) }
	domain := func(d string) Request { return with(func(q *Request) { q.Domain = d }) }
	value := func(v string) Request {
		return with(func(q *Request) { q.Descriptors["account"] = v })
	}
	named := func(name string) Request {
		return with(func(q *Request) { q.Descriptors[name] = "x" })
	}
	entries := func(count int) Request {
		return with(func(q *Request) {
			q.Descriptors = map[string]string{}
			for i := range count {
				q.Descriptors[fmt.Sprint("k", i)] = "x"
			}
		})
	}
	const megabytes = 10 << 20
	for name, tc := range map[string]struct {
		q     Request
		field string // wrong; "": none
		mend  string // part of the problem
	}{
		"one unit":                  {request("a"), "", ""},
		"the zero request":          {Request{}, "domain", "name the domain"},
		"cost 0":                    {cost(0), "cost", "from 1 to"},
		"cost -1":                   {cost(-1), "cost", "from 1 to"},
		"cost 1e3":                  {cost(1000), "", ""},
		"cost 2^31":                 {cost(1 << 31), "", ""},
		"cost 2^51":                 {cost(1 << 51), "", ""},
		"cost 2^51+1":               {cost(1<<51 + 1), "cost", "2251799813685248"},
		"cost 2^53-1":               {cost(1<<53 - 1), "cost", "2251799813685248"},
		"cost 2^53":                 {cost(1 << 53), "cost", "2251799813685248"},
		"cost 2^53+1":               {cost(1<<53 + 1), "cost", "2251799813685248"},
		"cost 2^63-1":               {cost(math.MaxInt64), "cost", "2251799813685248"},
		"cost -2^63, as 2^63 wraps": {cost(math.MinInt64), "cost", "from 1 to"},
		"no domain":                 {domain(""), "domain", "name the domain"},
		"longest domain":            {domain(strings.Repeat("d", 63)), "", ""},
		"domain of 64 bytes":        {domain(strings.Repeat("d", 64)), "domain", "63 bytes"},
		"domain of 10 MB": {domain(strings.Repeat("d", megabytes)), "domain",
			"63 bytes"},
		"no descriptors":     {with(func(q *Request) { q.Descriptors = nil }), "", ""},
		"16 descriptors":     {entries(16), "", ""},
		"17 descriptors":     {entries(17), "descriptors", "at most 16"},
		"10,000 descriptors": {entries(10_000), "descriptors", "at most 16"},
		"empty name":         {named(""), "descriptors", "empty"},
		"longest name":       {named(strings.Repeat("n", 128)), "", ""},
		"name of 129 bytes": {named(strings.Repeat("n", 129)), "descriptors",
			"128 bytes"},
		"name of 10 MB": {named(strings.Repeat("n", megabytes)), "descriptors",
			"128 bytes"},
		"empty value":   {value(""), "", ""},
		"longest value": {value(strings.Repeat("v", 256)), "", ""},
		"value of 257 bytes": {value(strings.Repeat("v", 257)), "descriptors.account",
			"send a hash"},
		"256 letters of two bytes": {value(strings.Repeat("é", 256)), "descriptors.account",
			"send a hash"},
		"value of 10 MB": {value(strings.Repeat("v", megabytes)),
			"descriptors.account", "send a hash"},
		"value that is not UTF-8":     {value("\xff\xfe"), "", ""},
		"value of NUL and line break": {value("\x00\r\n"), "", ""},
		"value of braces":             {value("}{"), "", ""},
		"value of a star":             {value("*"), "", ""},
		"value of U+202E":             {value("\u202e"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tc.q.Validate()
			if tc.field == "" {
				if err != nil {
					t.Errorf("refused: %v", err)
				}
				return
			}
			var wrong *invalid.Field
			if !errors.As(err, &wrong) || wrong.Name != tc.field ||
				!strings.Contains(wrong.Problem, tc.mend) {
				t.Fatalf("error %v, want field %s and %q", err, tc.field, tc.mend)
			}
			if len(err.Error()) > 400 {
				t.Errorf("the error has %d bytes: it repeats what it was sent", len(err.Error()))
			}
		})
	}
}
