package policy

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/chaos/lab/suite"
)

// TestLongValuesAreShortened: a value of up to 64 bytes stands in an ID as it is, a longer one as a
// digest that is the same in every region and version, and is read back as one.
func TestLongValuesAreShortened(t *testing.T) {
	l := parsed(Limit{Domain: "api", Name: "a", Key: []string{"account", "path"},
		Algorithm: FixedWindow, Window: time.Minute})
	whole, long := strings.Repeat("v", MaxValueBytes), strings.Repeat("v", MaxValueBytes+1)
	const digest = "#92eab854305e1dec64f0b0074e2b6a20718f9bff20a97fb301ba18025c18d205"
	for value, want := range map[string]string{"": "", "42": "42", whole: whole, long: digest} {
		id := l.Bucket(map[string]string{"account": value, "path": "/"})
		ref, err := ParseBucketID(id)
		if err != nil || ref.Key[0].Value != want || isDigest(ref.Key[0].Value) != (value == long) ||
			ref.Key[1].Value != "/" || ref.ID() != id {
			t.Errorf("%d bytes: %+v, %v, want %q", len(value), ref, err, want)
		}
		if id.Entity() != want {
			t.Errorf("%d bytes: entity %q", len(value), id.Entity())
		}
	}
}

// TestNoValueLooksLikeADigest: a client that sends the digest of somebody else's value as its own
// value has its own bucket.
func TestNoValueLooksLikeADigest(t *testing.T) {
	l := parsed(Limit{Domain: "api", Name: "a", Key: []string{"account"}, Algorithm: FixedWindow,
		Window: time.Minute})
	of := func(value string) BucketID { return l.Bucket(map[string]string{"account": value}) }
	victim := strings.Repeat("a long account ", 10)
	seen := map[BucketID]string{}
	// the digest, the digest of that, ...
	for value := victim; len(seen) < 5; value = of(value).Entity() {
		if other, twice := seen[of(value)]; twice {
			t.Fatalf("%q and %q have one bucket", value, other)
		}
		seen[of(value)] = value
	}
}

// TestLongValuesStayApart: buckets with different values have different IDs, however long the
// values are and wherever they end, and no ID is longer than allowed.
func TestLongValuesStayApart(t *testing.T) {
	l := parsed(Limit{Domain: "api", Name: "a", Key: []string{"k", "l"}, Algorithm: FixedWindow,
		Window: time.Minute})
	suite.Check(t, func(t *rapid.T) {
		text := strings.Repeat(rapid.StringMatching(`[0-9:,#a]{1,3}`).Draw(t, "text"),
			rapid.IntRange(1, 4000).Draw(t, "times"))
		cut := func(label string) (string, string) {
			at := rapid.IntRange(0, len(text)).Draw(t, label)
			return text[:at], text[at:]
		}
		a, b := cut("a")
		c, d := cut("c")
		one, other := l.Bucket(map[string]string{"k": a, "l": b}),
			l.Bucket(map[string]string{"k": c, "l": d})
		if (one == other) != (a == c) {
			t.Fatalf("cut at %d and %d: IDs %q and %q", len(a), len(c), one, other)
		}
		if len(one) > 4*MaxValueBytes {
			t.Fatalf("an ID of %d bytes", len(one))
		}
	})
}

// TestTheLongestID: a limit in which everything has the maximum length makes the longest ID, which
// can be parsed.
func TestTheLongestID(t *testing.T) {
	name := func(i int) string { return strings.Repeat(string(rune('a'+i)), MaxNameBytes) }
	l := &Limit{Domain: name(0), Name: name(1), Algorithm: SlidingWindowCounter, Window: MaxWindow}
	descriptors := map[string]string{}
	for i := range MaxKeyNames {
		l.Key = append(l.Key, name(i))
		descriptors[name(i)] = strings.Repeat("v", 100_000)
	}
	for i := range MaxConditions {
		l.Match = append(l.Match, Condition{name(i + MaxKeyNames),
			strings.Repeat("c", MaxConditionText)})
	}
	longest := 0
	for _, l.Algorithm = range algorithms.Kinds {
		id := parsed(*l).Bucket(descriptors)
		longest = max(longest, len(id))
		ref, err := ParseBucketID(id)
		if err != nil || len(ref.Match) != MaxConditions || ref.ID() != id {
			t.Errorf("%s: %+v, %v", l.Algorithm, ref, err)
		}
		for i, c := range ref.Match {
			if c.Name != l.Match[i].Name || !isDigest(c.Value) {
				t.Errorf("%s: condition %+v of %+v", l.Algorithm, c, l.Match[i])
			}
		}
	}
	l.Algorithm, l.Period = FixedWindow, "year 02-29 America/Argentina/ComodRivadavia"
	longest = max(longest, len(parsed(*l).Bucket(descriptors)))
	if longest > MaxBucketIDBytes || longest < MaxBucketIDBytes*9/10 {
		t.Errorf("the longest ID has %d bytes, %d is said", longest, MaxBucketIDBytes)
	}
}
