package policy

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// parsed returns the entry as Parse would return it.
func parsed(l Limit) *Limit {
	l.id = idTextOf(&l)
	return &l
}

func TestBucketIDText(t *testing.T) {
	key := []KeyValue{{"account", "42"}, {"address", "::1,"}}
	const plain = "3:api,14:account-minute,12:fixed_window,11:60000000000,7:account,2:42,7:address,4:::1,,"
	for name, c := range map[string]struct {
		match []Condition
		id    string
		hash  uint64
	}{
		"no conditions": {nil, plain, 0xe89f61ee0b34ad1},
		"one condition": {[]Condition{{"plan", "free"}}, plain + "0:,4:plan,4:free,",
			0xf58a93dca51bfd04},
		"two conditions": {[]Condition{{"account", "42"}, {"plan", ""}},
			plain + "0:,7:account,2:42,4:plan,0:,", 0x5450313e1d0f8059},
	} {
		t.Run(name, func(t *testing.T) {
			l := parsed(Limit{Domain: "api", Name: "account-minute",
				Key: []string{"account", "address"}, Match: c.match, Algorithm: FixedWindow,
				Window: time.Minute})
			id := l.Bucket(map[string]string{"account": "42", "address": "::1,", "plan": "unread",
				"unused": "x"})
			if string(id) != c.id {
				t.Errorf("got  %s\nwant %s", id, c.id)
			}
			if got := id.Hash(); got != c.hash {
				t.Errorf("hash %#x, want %#x: shards and remainders depend on it in every region",
					got, c.hash)
			}
			ref, err := ParseBucketID(id)
			want := BucketRef{"api", "account-minute", FixedWindow, time.Minute, "", key, c.match, false}
			if err != nil || !reflect.DeepEqual(ref, want) {
				t.Errorf("ParseBucketID = %+v, %v, want %+v", ref, err, want)
			}
		})
	}
}

func TestParseBucketIDRefuses(t *testing.T) {
	const good = "3:api,1:a,12:fixed_window,8:10000000,1:k,1:v,"
	if _, err := ParseBucketID(good); err != nil {
		t.Fatal(err)
	}
	if _, err := ParseBucketID(BucketID(good + conditionsText(MaxConditions))); err != nil {
		t.Fatal(err)
	}
	replace := func(old, new string) string { return strings.Replace(good, old, new, 1) }
	assigned := func(window string) string {
		return "3:api,1:a,12:token_bucket," + window + ",1:k,1:v,"
	}
	if _, err := ParseBucketID(BucketID(assigned("15:10000000/assign"))); err != nil {
		t.Fatal(err)
	}
	for name, id := range map[string]string{
		"empty":               "",
		"cut short":           good[:len(good)-1],
		"more after the end":  good + "x",
		"no key":              "3:api,1:a,12:fixed_window,8:10000000,",
		"name without value":  good + "1:l,",
		"nine parts":          good + strings.Repeat("1:l,1:v,", 8),
		"a part twice":        good + "1:k,1:w,",
		"leading zero":        replace("3:api", "03:api"),
		"signed length":       replace("3:api", "+3:api"),
		"negative length":     replace("3:api", "-1:api"),
		"huge length":         replace("3:api", "99999999999999999999:api"),
		"length too long":     replace("1:v", "2:v"),
		"length too short":    replace("3:api", "2:api"),
		"no colon":            "3api,",
		"empty domain":        replace("3:api", "0:"),
		"bad domain":          replace("3:api", "3:a i"),
		"bad limit name":      replace("1:a", "1:_,1: "),
		"long limit name":     replace("1:a", "64:"+strings.Repeat("a", 64)),
		"bad key name":        replace("1:k", "1: "),
		"unknown algorithm":   replace("12:fixed_window", "4:gcra"),
		"window of words":     replace("8:10000000", "4:10ms"),
		"window too short":    replace("8:10000000", "7:9999000"),
		"window too long":     replace("8:10000000", "17:31622400000001000"),
		"window with zeros":   replace("8:10000000", "9:010000000"),
		"window not in clock": replace("8:10000000", "8:10000001"),

		"assigned windows":    replace("8:10000000", "15:10000000/assign"),
		"assigned queue":      "3:api,1:a,12:leaky_bucket,15:10000000/assign,1:k,1:v,",
		"assigned twice":      assigned("22:10000000/assign/assign"),
		"assigned otherwise":  assigned("16:10000000/assigns"),
		"assigned, no window": assigned("7:/assign"),

		"long value":           replace("1:v", "65:"+strings.Repeat("v", 65)),
		"digest in capitals":   replace("1:v", "65:#"+strings.Repeat("A", 64)),
		"digest without mark":  replace("1:v", "64:"+strings.Repeat("a", 63)),
		"digest cut short":     replace("1:v", "66:#"+strings.Repeat("a", 65)),
		"long condition value": good + "0:,1:p,65:" + strings.Repeat("a", 65) + ",",

		"no window":                  "3:api,1:a,12:fixed_window,",
		"a mark and no conditions":   good + "0:,",
		"conditions and no key":      replace("1:k,1:v,", "0:,1:p,1:x,"),
		"condition without value":    good + "0:,1:p,",
		"two marks":                  good + "0:,0:,1:p,1:x,",
		"a mark as a name":           good + "0:,1:p,1:x,0:,1:y,",
		"a second list":              good + "0:,1:p,1:x,0:,1:q,1:y,",
		"nine conditions":            good + conditionsText(MaxConditions+1),
		"a condition twice":          good + "0:,1:p,1:x,1:p,1:x,",
		"conditions not sorted":      good + "0:,1:q,1:x,1:p,1:x,",
		"bad condition name":         good + "0:,1: ,1:x,",
		"long condition name":        good + "0:,64:" + strings.Repeat("a", 64) + ",1:x,",
		"a key against a condition":  good + "0:,1:k,1:w,",
		"nine parts with conditions": good + strings.Repeat("1:l,1:v,", 8) + "0:,1:p,1:x,",
	} {
		if ref, err := ParseBucketID(BucketID(id)); err == nil {
			t.Errorf("%s: %q was read as %+v", name, id, ref)
		}
	}
}

// conditionsText encodes n conditions with the mark before them.
func conditionsText(n int) string {
	text := "0:,"
	for i := range n {
		text += fmt.Sprintf("2:%02d,1:x,", i)
	}
	return text
}

// drawRef draws a reference that a document can produce. Values are any bytes,
// mostly those that could confuse an encoding.
func drawRef(t *rapid.T, label string) BucketRef {
	name := rapid.StringMatching(`[a-z0-9._-]{1,3}`)
	ref := BucketRef{
		Domain:    name.Draw(t, label+" domain"),
		Name:      name.Draw(t, label+" name"),
		Algorithm: rapid.SampledFrom(algorithms.Kinds).Draw(t, label+" algorithm"),
		Window: MinWindow + time.Microsecond*time.Duration(rapid.Int64Range(0, 3).Draw(t,
			label+" window")),
	}
	if ref.Algorithm == TokenBucket {
		ref.Assigned = rapid.Bool().Draw(t, label+" assigned")
	}
	value := rapid.OneOf(rapid.StringMatching(`[0-2:,a]{0,6}`),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, MaxValueBytes),
			func(b []byte) string { return string(b) }))
	keys := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c.]{1,2}`), 1, MaxKeyNames,
		rapid.ID[string])
	for _, k := range keys.Draw(t, label+" key") {
		ref.Key = append(ref.Key, KeyValue{k, value.Draw(t, label+" value")})
	}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c.]{1,2}`), 0, MaxConditions,
		rapid.ID[string]).Draw(t, label+" match")
	slices.Sort(names)
	for _, n := range names {
		c := Condition{n, value.Draw(t, label+" condition")}
		if i := slices.IndexFunc(ref.Key, func(kv KeyValue) bool { return kv.Name == n }); i >= 0 {
			c.Value = ref.Key[i].Value // the entry applies to this key
		}
		ref.Match = append(ref.Match, c)
	}
	return ref
}

func TestBucketIDRoundTrip(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		ref := drawRef(t, "")
		entry := Limit{Domain: ref.Domain, Name: ref.Name, Match: ref.Match,
			Algorithm: ref.Algorithm, Window: ref.Window}
		if ref.Assigned {
			entry.Assign = &Assign{}
		}
		descriptors := map[string]string{"unused": "x"}
		for _, kv := range ref.Key {
			entry.Key = append(entry.Key, kv.Name)
			descriptors[kv.Name] = kv.Value
		}
		l := parsed(entry)
		id := l.Bucket(descriptors)
		if id != ref.ID() {
			t.Fatalf("Limit.Bucket %q, BucketRef.ID %q", id, ref.ID())
		}
		before := []byte("before")
		if got := l.AppendBucket(before, descriptors); string(got) != "before"+string(id) {
			t.Fatalf("AppendBucket made %q of %q", got, before)
		}
		got, err := ParseBucketID(id)
		if err != nil || !reflect.DeepEqual(got, ref) {
			t.Fatalf("ParseBucketID(%q) = %+v, %v, want %+v", id, got, err, ref)
		}
	})
}

func TestBucketIDInjective(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		a, b := drawRef(t, "a"), drawRef(t, "b")
		// Most pairs should differ only slightly.
		if rapid.Bool().Draw(t, "same head") {
			b.Domain, b.Name, b.Algorithm, b.Window = a.Domain, a.Name, a.Algorithm, a.Window
			b.Assigned = a.Algorithm == TokenBucket && rapid.Bool().Draw(t, "b assigned")
		}
		if rapid.Bool().Draw(t, "same key") {
			b.Key = a.Key
		}
		if rapid.Bool().Draw(t, "same match") {
			b.Match = a.Match
		}
		if (a.ID() == b.ID()) != reflect.DeepEqual(a, b) {
			t.Fatalf("%+v and %+v have the IDs %q and %q", a, b, a.ID(), b.ID())
		}
	})
}

// TestBucketIDKeepsKeyAndConditionsApart divides one sequence of pairs into key and conditions at
// every place. Some values look like marks and pairs.
func TestBucketIDKeepsKeyAndConditionsApart(t *testing.T) {
	pairs := []KeyValue{{"a", ""}, {"b", "0:,1:c,"}, {"c", "0:,"}, {"d", ""}, {"e", "1:f,0:,"}}
	seen := make(map[BucketID]int)
	for cut := 1; cut <= len(pairs); cut++ {
		ref := BucketRef{Domain: "api", Name: "a", Algorithm: FixedWindow, Window: time.Minute,
			Key: pairs[:cut]}
		for _, kv := range pairs[cut:] {
			ref.Match = append(ref.Match, Condition(kv))
		}
		if other, twice := seen[ref.ID()]; twice {
			t.Errorf("cut behind %d and behind %d pairs, the ID is %q", other, cut, ref.ID())
		}
		seen[ref.ID()] = cut
		if got, err := ParseBucketID(ref.ID()); err != nil || !reflect.DeepEqual(got, ref) {
			t.Errorf("ParseBucketID(%q) = %+v, %v, want %+v", ref.ID(), got, err, ref)
		}
	}
}

// FuzzParseBucketID checks that whatever is accepted is the only encoding of what was read.
func FuzzParseBucketID(f *testing.F) {
	f.Add("3:api,1:a,12:fixed_window,8:10000000,1:k,1:v,")
	f.Add("3:api,1:a,12:token_bucket,11:60000000000,1:k,0:,1:l,2:,,,")
	f.Add("3:api,1:a,12:fixed_window,8:10000000,1:k,1:v,0:,1:k,1:v,4:plan,0:,")
	f.Add("3:api,1:a,12:fixed_window,8:10000000,1:k,0:,0:,1:p,2:0:,")
	f.Add("3:api,1:a,12:fixed_window,8:10000000,1:k,65:#" + strings.Repeat("0f", 32) + ",")
	f.Add("3:api,1:a,12:fixed_window,8:10000000,1:k,65:" + strings.Repeat("v", 65) + ",")
	f.Add("3:api,1:a,12:fixed_window,22:month 15 Europe/Berlin,1:k,1:v,")
	f.Add("3:api,1:a,12:fixed_window,14:year 04-06 UTC,1:k,1:v,")
	f.Add("3:api,1:a,12:fixed_window,15:month 015 UTC,,1:k,1:v,")
	f.Add("3:api,1:a,12:token_bucket,15:10000000/assign,1:k,1:v,")
	f.Add("3:api,1:a,12:leaky_bucket,15:10000000/assign,1:k,1:v,")
	f.Add("03:api,")
	f.Add("9223372036854775807:")
	f.Fuzz(func(t *testing.T, text string) {
		ref, err := ParseBucketID(BucketID(text))
		if err != nil {
			return
		}
		if len(text) > MaxBucketIDBytes {
			t.Errorf("%d bytes were read as an ID", len(text))
		}
		if got := ref.ID(); string(got) != text {
			t.Errorf("%q was read as %+v, whose ID is %q", text, ref, got)
		}
	})
}

func BenchmarkBucket(b *testing.B) {
	l := parsed(Limit{Domain: "api", Name: "account-minute", Key: []string{"account"},
		Algorithm: FixedWindow, Window: time.Minute})
	descriptors := map[string]string{"account": "42"}
	b.ReportAllocs()
	for b.Loop() {
		l.Bucket(descriptors)
	}
}

// TestEntity: the entity of a bucket is the value of the first part of its key, of whatever bytes
// it is.
func TestEntity(t *testing.T) {
	suite.Check(t, func(t *rapid.T) {
		ref := drawRef(t, "bucket")
		if got := ref.ID().Entity(); got != ref.Key[0].Value {
			t.Fatalf("the entity of %q is %q, want %q", ref.ID(), got, ref.Key[0].Value)
		}
	})
	l := parsed(Limit{Domain: "api", Name: "a", Key: []string{"account", "path"},
		Algorithm: FixedWindow, Window: time.Minute})
	if got := l.Bucket(map[string]string{"account": "42", "path": "/"}).Entity(); got != "42" {
		t.Errorf("entity %q, want 42", got)
	}
	for _, id := range []BucketID{"", "x", "3:api,", "3:api,1:a,12:fixed_window,8:10000000,1:k",
		"3:api,1:a,12:fixed_window,8:10000000,1:k,9:v,"} {
		if got := id.Entity(); got != "" {
			t.Errorf("the entity of %q is %q", id, got)
		}
	}
}
