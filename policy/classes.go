package policy

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// MaxClasses bounds the classes of one limit. Each is a label of metrics, and a node remembers a
// denial of each.
const MaxClasses = 16

// Classes says which requests go first: a request of a class is admitted only while it and all use
// together fit into the class's part of what its region holds. So what is above that part is kept
// for the classes with a larger one. Classes have no counts of their own.
type Classes struct {
	// By names the descriptor whose value is the class. It is no part of the key. Over Entries it
	// is the last descriptor of a list, behind those of the path.
	By string
	// All holds the classes, sorted by name, 1 to MaxClasses.
	All []Class
}

// Class is a class of requests.
type Class struct {
	Name string
	Part PPM // of what the region holds, of a TokenBucket of its capacity: above 0 to PPMOne
}

// String returns the classes as name=part, as people read them.
func (c *Classes) String() string {
	if c == nil {
		return "none"
	}
	words := []string{"by " + c.By}
	for _, one := range c.All {
		words = append(words, one.Name+"="+one.Part.String())
	}
	return strings.Join(words, " ")
}

// Names returns the names of the classes.
func (c *Classes) Names() (all []string) {
	for _, one := range c.All {
		all = append(all, one.Name)
	}
	return all
}

// Capped returns the largest part of the rights, below the whole, that a class of the limit may use; 0:
// there is none.
func (l *Limit) Capped() (part quantity.PPM) {
	if l.Classes == nil {
		return 0
	}
	for _, one := range l.Classes.All {
		if one.Part < PPMOne {
			part = max(part, quantity.PPM(one.Part))
		}
	}
	return part
}

// named returns the class of a name.
func (c *Classes) named(name string) (Class, bool) {
	i, known := slices.BinarySearchFunc(c.All, name, func(one Class, name string) int { return strings.Compare(one.Name, name) })
	if !known {
		return Class{Part: PPMOne}, false
	}
	return c.All[i], true
}

// passes reports whether a descriptor behind the path of a limit with entries says the class.
func (c *Classes) passes(name string) bool { return c != nil && c.By == name }

// ClassOf returns the class of a request to which the limit, which has classes, applies. A request
// that names none of them has no name and the part PPMOne; known is false then.
func (l *Limit) ClassOf(descriptors map[string]string) (c Class, known bool) {
	return l.Classes.named(descriptors[l.Classes.By])
}

// ClassOfList is ClassOf for a list of descriptors.
func (l *Limit) ClassOfList(list []KeyValue) (c Class, known bool) {
	if l.Entries == nil {
		value, _ := valueIn(list, l.Classes.By)
		return l.Classes.named(value)
	}
	if len(list) != len(l.Entries)+1 {
		return Class{Part: PPMOne}, false
	}
	return l.Classes.named(list[len(l.Entries)].Value)
}

const (
	mendClasses = "write the descriptor that says the class, and a part for each class: {by: priority, batch: 0.6, interactive: 1}"
	classesBy   = "by"
)

// readClasses reads which requests go first.
func readClasses(f strictyaml.Value) *Classes {
	entries, ok := f.Entries(mendClasses)
	if !ok {
		return nil
	}
	c, before := &Classes{}, f.Failures()
	for _, e := range entries {
		if e.Name == classesBy {
			c.By, _ = readName(e.Value, descriptorNames)
			continue
		}
		checkName(e.Key, e.Name, descriptorNames)
		read := f.Failures()
		one := Class{Name: e.Name, Part: readFraction(e.Value, PPMOne)}
		if one.Part == 0 && f.Failures() == read {
			e.Value.Fail("a part of 0 is never admitted", "write a number above 0, up to 1")
		}
		c.All = append(c.All, one)
	}
	switch _, by := f.Peek(classesBy); {
	case !by:
		f.Fail("nothing says which descriptor has the class", mendClasses)
	case len(c.All) == 0 || len(c.All) > MaxClasses:
		f.Fail(fmt.Sprintf("%d classes", len(c.All)), fmt.Sprintf("name 1 to %d, such as {by: priority, batch: 0.6, interactive: 1}", MaxClasses))
	}
	if f.Failures() > before {
		return nil
	}
	slices.SortFunc(c.All, func(a, b Class) int { return strings.Compare(a.Name, b.Name) })
	return c
}

// checkClasses refuses classes where a part of what a region holds would say nothing of who goes
// first.
func checkClasses(f strictyaml.Value, l *Limit) {
	refuse := f.Fail
	switch {
	case slices.Contains(l.Key, l.Classes.By):
		refuse(fmt.Sprintf("%s makes the key, so each class has a count of its own", l.Classes.By), "take it from the key, or remove classes")
	case slices.ContainsFunc(l.Match, func(c Condition) bool { return c.Name == l.Classes.By }):
		refuse(fmt.Sprintf("the limit applies to one value of %s alone, so all its requests are of one class", l.Classes.By),
			"take it from the conditions, or remove classes")
	case len(l.Entries) >= MaxEntries:
		refuse(fmt.Sprintf("the class stands behind %d entries, and a list has at most %d", len(l.Entries), MaxEntries),
			"use an entry less, or remove classes")
	case l.Algorithm == LeakyBucket:
		refuse("a leaky_bucket gives each request a turn in one queue, in which nobody goes first", "use a token_bucket, or remove classes")
	case l.Consistency == Prefetch:
		refuse("nodes that hold units admit from them, of whichever class a request is", fmt.Sprintf("write consistency: %s, or remove classes", Exact))
	case l.Home():
		refuse("home mode: the limit is too small to split between the regions, and most hold no units of which a class could have a part",
			fmt.Sprintf("raise limit and burst to at least %d, or remove classes", l.leastSplit()))
	default:
		checkParts(f, l)
	}
}

// checkParts refuses a part that comes to no unit of some region's fixed split.
func checkParts(f strictyaml.Value, l *Limit) {
	field, least := "limit", l.leastStored()
	if l.Algorithm.Bucket() {
		field = "burst"
	}
	for _, c := range l.Classes.All {
		if algorithms.Portion(least, quantity.PPM(c.Part)) == 0 {
			mend := fmt.Sprintf("write a larger part, or a larger %s or weight", field)
			if least > 0 {
				mend = fmt.Sprintf("write at least %s, or a larger %s or weight", (PPMOne+PPM(least)-1)/PPM(least), field)
			}
			f.Fail(fmt.Sprintf("class %s has no unit of the %d that the smallest region has by itself, so it is never admitted there", c.Name, least), mend)
			return
		}
	}
}

// leastStored returns the least above 0 that a region's store may have of the limit by the fixed
// split, of a bucket of its burst; 0 if it keeps all of it as a reserve.
func (l *Limit) leastStored() quantity.Units {
	units, sum := l.Limit, quantity.Units(0)
	if l.Algorithm.Bucket() {
		units = l.Burst
	}
	for _, w := range l.Weights {
		sum += w
	}
	least := units
	for _, w := range l.Weights {
		if w > 0 {
			hi, lo := bits.Mul64(uint64(units), uint64(w))
			part, _ := bits.Div64(hi, lo, uint64(sum)) // at most units
			least = min(least, quantity.Units(max(part, 1)))
		}
	}
	return least - algorithms.Portion(least, quantity.PPM(l.Reserve()))
}
