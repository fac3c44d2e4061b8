package policy

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/quotad/quotad/policy/strictyaml"
)

// setting is a value of an entry that is read, compared and shown by itself. A new one is a field of
// Limit, a line of settings and a property of the schema, beside what it is for.
type setting struct {
	name  string
	coded coding
	usual any
	read  func(o strictyaml.Object, l *Limit)
	value func(l *Limit) any
	shown func(l *Limit) any // the value in force
}

// coding says how a setting stands in the text whose digest is in the epoch. Documents from before it
// existed keep their epoch.
type coding int

const (
	codedFirst coding = iota // always, in the order of settings
	codedLast                // see encoding.limit
	codedApart               // by its name, and only if it is not the usual one
)

const (
	// MaxBorrowingLimit is the largest BorrowingLimit that can be written.
	MaxBorrowingLimit = 1_000_000 * PPMOne
	// DefaultLendingLimit keeps a twentieth of a region's entitlement at home, so that a request
	// there never waits for lent units to come back.
	DefaultLendingLimit PPM = 950_000
)

// settings holds all of them, in the order in which they are shown.
var settings = []setting{
	settingOf("borrowing_limit", codedFirst, Unlimited, fraction(MaxBorrowingLimit),
		func(l *Limit) *PPM { return &l.BorrowingLimit }),
	settingOf("lending_limit", codedFirst, DefaultLendingLimit, fraction(PPMOne),
		func(l *Limit) *PPM { return &l.LendingLimit }),
	settingOf("on_exhausted", codedFirst, ExhaustedDeny, oneOf(ExhaustedDeny, ExhaustedBorrow),
		func(l *Limit) *OnExhausted { return &l.OnExhausted }),
	settingOf("on_store_failure", codedFirst, StoreFailureLocal,
		oneOf(StoreFailureLocal, StoreFailureAllow, StoreFailureDeny),
		func(l *Limit) *OnStoreFailure { return &l.OnStoreFailure }),
	settingOf("local_reserve", codedFirst, 0, fraction(PPMOne),
		func(l *Limit) *PPM { return &l.LocalReserve }).showing(func(l *Limit) any { return l.Reserve() }),
	settingOf("consistency", codedLast, Exact, oneOf(Exact, Prefetch),
		func(l *Limit) *Consistency { return &l.Consistency }),
	settingOf("shadow", codedLast, false, strictyaml.Value.Bool, func(l *Limit) *bool { return &l.Shadow }),
	settingOf("alternative", codedApart, false, strictyaml.Value.Bool,
		func(l *Limit) *bool { return &l.Alternative }),
	settingOf("charge", codedApart, ChargeAdmitted, oneOf(ChargeAdmitted, ChargeAlways),
		func(l *Limit) *Charge { return &l.Charge }),
	settingOf("classes", codedApart, nil, readClasses, func(l *Limit) **Classes { return &l.Classes }),
	settingOf("unit", codedApart, "", limitNames.read, func(l *Limit) *string { return &l.Unit }),
}

func settingOf[T any](name string, c coding, usual T, read func(strictyaml.Value) T, of func(*Limit) *T) setting {
	value := func(l *Limit) any { return *of(l) }
	return setting{name, c, usual,
		func(o strictyaml.Object, l *Limit) { *of(l) = strictyaml.Optional(o, name, usual, read) }, value, value}
}

// showing returns the setting with another value in force than the one that is written.
func (s setting) showing(shown func(*Limit) any) setting {
	s.shown = shown
	return s
}

// code returns the value as it stands in the text whose digest is in the epoch.
func (s setting) code(l *Limit) string {
	v := s.value(l)
	if p, is := v.(PPM); is {
		return strconv.FormatInt(int64(p), 10)
	}
	return fmt.Sprint(v)
}

func fraction(highest PPM) func(strictyaml.Value) PPM {
	return func(f strictyaml.Value) PPM { return readFraction(f, highest) }
}

func oneOf[T ~string](words ...T) func(strictyaml.Value) T {
	return func(f strictyaml.Value) T { return strictyaml.OneOf(f, words...) }
}

func settingNames() (all []string) {
	for _, s := range settings {
		all = append(all, s.name)
	}
	return all
}

// Settings yields the names of what an entry says of a limit, beside its numbers, and the values in
// force as a document writes them.
func (l *Limit) Settings() iter.Seq2[string, string] {
	return func(yield func(name, value string) bool) {
		for _, s := range settings {
			if !yield(s.name, fmt.Sprint(s.shown(l))) {
				return
			}
		}
	}
}

// readSettings reads all settings, and checks them against one another.
func readSettings(o strictyaml.Object, l *Limit) {
	for _, s := range settings {
		s.read(o, l)
	}
	if _, given := o.Field("on_exhausted"); given {
		l.deniesAtOnce = l.OnExhausted == ExhaustedDeny
	}
	// A behaviour that could not be read is reported already.
	if f, ok := o.Field("local_reserve"); ok && l.OnStoreFailure != "" && l.OnStoreFailure != StoreFailureLocal {
		f.Fail(fmt.Sprintf("local_reserve belongs to on_store_failure: %s, and nothing would ever spend it under %s",
			StoreFailureLocal, l.OnStoreFailure),
			fmt.Sprintf("remove it, or write on_store_failure: %s", StoreFailureLocal))
		l.LocalReserve = 0
	}
	if l.Alternative && l.Shadow {
		o.At("alternative").Fail("a shadow limit never denies", "remove alternative, or shadow")
	}
	if l.Consistency == Prefetch {
		checkPrefetch(o.At("consistency"), l)
	}
	if l.Classes != nil && l.Algorithm != "" && l.entitled() > 0 && l.Limit > 0 && (l.Burst > 0 || !l.Algorithm.Bucket()) {
		checkClasses(o.At("classes"), l)
	}
	readDebt(o, l)
	l.SettleWithin = strictyaml.Optional(o, "settle_within", l.usualSettle(), readSettle)
}

// checkPrefetch checks whether nodes may hold units. Where use does not count by cells alone, units
// that are spent later than they were charged would count for too short.
func checkPrefetch(f strictyaml.Value, l *Limit) {
	switch {
	case l.Algorithm != FixedWindow && l.Algorithm != SlidingWindowCounter:
		f.Fail(fmt.Sprintf("a %s counts the moment of each admission, so units charged beforehand would count for too short", l.Algorithm),
			fmt.Sprintf("write consistency: %s, or use a %s or %s", Exact, FixedWindow, SlidingWindowCounter))
	case l.Alternative:
		f.Fail("an alternative limit is judged by the store alone", fmt.Sprintf("write consistency: %s", Exact))
	case l.Shadow:
		f.Fail("a shadow limit is judged by the store alone", fmt.Sprintf("write consistency: %s", Exact))
	}
}
