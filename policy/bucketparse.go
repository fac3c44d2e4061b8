package policy

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/quotad/quotad/algorithms"
)

// ParseBucketID reads an ID that came from elsewhere. It accepts the IDs that a valid document can
// produce under any version of quotad that knows the same algorithms; ref.ID() then gives the same
// ID back. Values, of the key and of conditions alike, may be any bytes, but no longer than such a
// document allows.
func ParseBucketID(id BucketID) (BucketRef, error) {
	fields, err := splitNetstrings(string(id))
	if err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	const head = 4
	if len(fields) < head {
		return BucketRef{}, badBucketID(id,
			fmt.Errorf("%d fields, where domain, name, algorithm, window and key are expected",
				len(fields)))
	}
	ref := BucketRef{Domain: fields[0], Name: fields[1], Algorithm: Algorithm(fields[2])}
	if _, _, _, ok := Period(fields[3]).parts(); ok {
		ref.Period = Period(fields[3])
	} else {
		var digits string
		digits, ref.Assigned = strings.CutSuffix(fields[3], assignedMark)
		if ref.Window, err = parseWindowField(digits); err != nil {
			return BucketRef{}, badBucketID(id, err)
		}
	}
	if ref.Key, ref.Match, err = parsePairs(fields[head:]); err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	if ref.Period != "" && ref.Algorithm != FixedWindow {
		return BucketRef{}, badBucketID(id, fmt.Errorf("a %.40q with windows of the calendar", ref.Algorithm))
	}
	if ref.Assigned && ref.Algorithm != TokenBucket {
		return BucketRef{}, badBucketID(id, fmt.Errorf("a %.40q that can be assigned", ref.Algorithm))
	}
	if err := ref.check(); err != nil {
		return BucketRef{}, badBucketID(id, err)
	}
	return ref, nil
}

func splitNetstrings(text string) ([]string, error) {
	fields := make([]string, 0, 6)
	for at := 0; at < len(text); {
		value, rest, err := cutNetstring(text[at:])
		if err != nil {
			return nil, fmt.Errorf("byte %d: %w", at, err)
		}
		fields = append(fields, value)
		at = len(text) - len(rest)
	}
	return fields, nil
}

func parseWindowField(digits string) (time.Duration, error) {
	n, err := strconv.ParseInt(digits, 10, 64)
	window := time.Duration(n)
	if err != nil || !isInteger(digits) || window < MinWindow || window > MaxWindow ||
		window%time.Microsecond != 0 {
		return 0, fmt.Errorf(
			"window %.40q is neither a period of a calendar nor a whole number of microseconds from 10ms to 366d, in nanoseconds",
			digits)
	}
	return window, nil
}

// parsePairs reads the fields after the window: the pairs of the key and, after a mark, those of
// the conditions. It refuses a mark without conditions, so that a bucket without conditions has
// only one ID.
func parsePairs(fields []string) (key []KeyValue, match []Condition, err error) {
	for len(fields) >= 2 && fields[0] != conditionsMark {
		key = append(key, KeyValue{fields[0], fields[1]})
		fields = fields[2:]
	}
	if len(key) < 1 || len(key) > MaxKeyNames {
		return nil, nil, fmt.Errorf("%d parts of the key, not 1 to %d", len(key), MaxKeyNames)
	}
	if len(fields) == 0 {
		return key, nil, nil
	}
	conditions := fields[1:]
	if fields[0] != conditionsMark || len(conditions)%2 != 0 {
		return nil, nil, errors.New("a name without a value at the end")
	}
	if n := len(conditions) / 2; n < 1 || n > MaxConditions {
		return nil, nil, fmt.Errorf("%d conditions after the mark, not 1 to %d", n, MaxConditions)
	}
	for pair := range slices.Chunk(conditions, 2) {
		match = append(match, Condition{pair[0], pair[1]})
	}
	return key, match, nil
}

// check checks the names, which reach metrics, logs and keys, and the rules that a document keeps
// for its key and conditions.
func (r BucketRef) check() error {
	if !domainNames.holds(r.Domain) {
		return fmt.Errorf("domain %.40q is not a valid name", r.Domain)
	}
	if !limitNames.holds(r.Name) {
		return fmt.Errorf("limit name %.40q is not valid", r.Name)
	}
	if !slices.Contains(algorithms.Kinds, r.Algorithm) {
		return fmt.Errorf("algorithm %.40q is not known", r.Algorithm)
	}
	for i, kv := range r.Key {
		if !isOccurrence(kv.Name) {
			return fmt.Errorf("key name %.40q is not valid", kv.Name)
		}
		if slices.ContainsFunc(r.Key[:i], func(o KeyValue) bool { return o.Name == kv.Name }) {
			return errors.New("key name " + kv.Name + " appears twice")
		}
		if err := checkValue(kv.Value); err != nil {
			return err
		}
	}
	return r.checkMatch()
}

// checkMatch also checks that the key meets the conditions on its own descriptors, as it must for
// the entry to apply.
func (r BucketRef) checkMatch() error {
	for i, c := range r.Match {
		if !isOccurrence(c.Name) {
			return fmt.Errorf("condition name %.40q is not valid", c.Name)
		}
		if i > 0 && r.Match[i-1].Name >= c.Name {
			return fmt.Errorf("condition %s comes after %s, where conditions are sorted by name and each is given once", c.Name, r.Match[i-1].Name)
		}
		if err := checkValue(c.Value); err != nil {
			return fmt.Errorf("condition on %s: %w", c.Name, err)
		}
		if slices.ContainsFunc(r.Key,
			func(kv KeyValue) bool { return kv.Name == c.Name && kv.Value != c.Value }) {
			return fmt.Errorf("the key has another %s than the condition on it", c.Name)
		}
	}
	return nil
}

func badBucketID(id BucketID, err error) error {
	return fmt.Errorf("bucket ID %.40q: %w; it was not made by Limit.Bucket of a compatible quotad",
		string(id), err)
}
