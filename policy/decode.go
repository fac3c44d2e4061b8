package policy

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/quotad/quotad/algorithms"
)

// Parse reads and checks a document. The filename is used in positions only.
// A document with any error is refused whole: the error is then an [Errors]
// with every problem found, in the order of the file. The document keeps a copy
// of src.
func Parse(filename string, src []byte) (*Document, error) {
	root, errs := parseYAML(filename, src)
	if len(errs) > 0 {
		errs.within(string(src)) // the YAML library counts tabs in quotes twice
		errs.sort()
		return nil, errs
	}
	d := &decoder{file: filename}
	doc := d.document(field{d: d, node: root})
	if len(d.errs) > 0 {
		d.errs.sort()
		return nil, d.errs
	}
	doc.epoch = doc.computeEpoch()
	doc.source = slices.Clone(src)
	return doc, nil
}

// decoder collects the problems of one document while it is decoded.
type decoder struct {
	file   string
	errs   Errors
	failed int // calls of fail, which tell whether a part was valid
}

func (d *decoder) fail(at *token.Token, path, problem, mend string) {
	d.failed++
	d.errs.add(&Error{Pos: d.position(at.Position), Path: path, Problem: problem, Mend: mend})
}

func (d *decoder) position(p *token.Position) Position {
	return Position{File: d.file, Line: p.Line, Column: p.Column}
}

var (
	documentFields = []string{"version", "regions", "limits"}
	regionFields   = []string{"weight"}
	limitFields    = []string{
		"name", "domain", "key", "match", "algorithm", "limit", "window", "burst", "weights",
		"borrowing_limit", "lending_limit", "on_exhausted", "on_store_failure", "local_reserve", "shadow",
	}
)

func (d *decoder) document(root field) *Document {
	doc := &Document{}
	o, ok := root.object(mendFile, documentFields)
	if !ok {
		return doc
	}
	if f, ok := o.required("version", "number the document, from 1 upwards, and raise the number with every change"); ok {
		doc.Version, _ = f.integer(1, MaxVersion)
	}
	if f, ok := o.required("regions", "name the regions with their weights: {us-east: {weight: 1}}"); ok {
		doc.Regions = f.regions()
	}
	if f, ok := o.required("limits", "list at least one limit"); ok {
		d.limits(f, doc)
	}
	return doc
}

// regions reads the regions, sorted by name. A region whose weight is wrong is
// kept, so that limits which name it are not reported as well.
func (f field) regions() []Region {
	const mend = "name each region with its weight: {us-east: {weight: 1}}"
	entries, ok := f.mapping(mend)
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		f.fail("empty", mend)
	}
	if len(entries) > MaxRegions {
		f.fail(fmt.Sprintf("%d regions", len(entries)), fmt.Sprintf("name at most %d", MaxRegions))
	}
	regions := make([]Region, 0, len(entries))
	for _, e := range entries {
		key := field{d: f.d, node: e.key, path: e.value.path}
		key.checkName(e.name, regionNames)
		region := Region{Name: e.name}
		if o, ok := e.value.object("write {weight: 1}", regionFields); ok {
			if w, ok := o.required("weight", "give the region a weight: {weight: 1}"); ok {
				region.Weight, _ = w.integer(1, MaxWeight)
			}
		}
		regions = append(regions, region)
	}
	slices.SortFunc(regions, func(a, b Region) int { return strings.Compare(a.Name, b.Name) })
	return regions
}

// limits reads the entries and checks them against one another.
func (d *decoder) limits(f field, doc *Document) {
	items, ok := f.list("list the limits, each starting with a dash")
	if !ok {
		return
	}
	if len(items) == 0 {
		f.fail("empty", "list at least one limit")
	}
	doc.Limits = make([]Limit, len(items))
	var valid []source
	for i, item := range items {
		l := &doc.Limits[i]
		l.Index = i
		l.Pos = d.position(item.start().Position)
		before := d.failed
		o := item.limit(l, doc)
		if d.failed == before {
			valid = append(valid, source{l, o})
		}
	}
	checkNames(valid)
	doc.warn(valid)
}

// limit reads one entry into l.
func (f field) limit(l *Limit, doc *Document) object {
	o, ok := f.object("write the fields of a limit: name, domain, key, algorithm, limit, window", limitFields)
	if !ok {
		return object{}
	}
	if f, ok := o.required("name", "name the limit, such as account-minute"); ok {
		l.Name, _ = f.name(limitNames)
	}
	if f, ok := o.required("domain", "name the domain whose requests it limits, such as api"); ok {
		l.Domain, _ = f.name(limitNames)
	}
	if f, ok := o.required("key", "list the descriptors that make the key, such as [account]"); ok {
		l.Key = f.key()
	}
	if f, ok := o.fields["match"]; ok {
		l.Match = f.match()
	}
	if f, ok := o.required("algorithm", "write how units are counted, such as fixed_window"); ok {
		l.Algorithm, _ = oneOf(f, algorithms.Kinds...)
	}
	o.capacity(l)
	o.sharing(l, doc.Regions)
	o.behaviour(l)
	return o
}

// sharing reads how regions share the limit.
func (o object) sharing(l *Limit, regions []Region) {
	if f, ok := o.fields["weights"]; ok {
		l.Weights = f.weights(regions)
	} else {
		l.Weights = make([]int64, len(regions))
		for i, r := range regions {
			l.Weights[i] = r.Weight
		}
	}
	l.BorrowingLimit = Unlimited
	if f, ok := o.fields["borrowing_limit"]; ok {
		l.BorrowingLimit, _ = f.fraction(MaxBorrowingLimit)
	}
	l.LendingLimit = DefaultLendingLimit
	if f, ok := o.fields["lending_limit"]; ok {
		l.LendingLimit, _ = f.fraction(PPMOne)
	}
}

// behaviour reads what happens when the limit cannot simply be decided.
func (o object) behaviour(l *Limit) {
	l.OnExhausted = ExhaustedDeny
	if f, ok := o.fields["on_exhausted"]; ok {
		l.OnExhausted, _ = oneOf(f, ExhaustedDeny, ExhaustedBorrow)
	}
	l.OnStoreFailure = StoreFailureLocal
	if f, ok := o.fields["on_store_failure"]; ok {
		l.OnStoreFailure, _ = oneOf(f, StoreFailureLocal, StoreFailureAllow, StoreFailureDeny)
	}
	if f, ok := o.fields["local_reserve"]; ok {
		l.LocalReserve, _ = f.localReserve(l.OnStoreFailure)
	}
	if f, ok := o.fields["shadow"]; ok {
		l.Shadow, _ = f.boolean()
	}
}

// localReserve reads the reserve of an entry, which only on_store_failure: local
// spends. A behaviour that could not be read is reported already.
func (f field) localReserve(on OnStoreFailure) (PPM, bool) {
	if on != "" && on != StoreFailureLocal {
		f.fail(fmt.Sprintf("local_reserve belongs to on_store_failure: %s, and nothing would ever spend it under %s", StoreFailureLocal, on),
			fmt.Sprintf("remove it, or write on_store_failure: %s", StoreFailureLocal))
		return 0, false
	}
	return f.fraction(PPMOne)
}

// key reads the list of descriptor names.
func (f field) key() []string {
	const mend = "list the descriptors that make the key, such as [account]"
	items, ok := f.list(mend)
	if !ok {
		return nil
	}
	if len(items) == 0 {
		f.fail("empty", mend)
	}
	if len(items) > MaxKeyNames {
		f.fail(fmt.Sprintf("%d names", len(items)), fmt.Sprintf("use at most %d", MaxKeyNames))
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		name, ok := item.name(descriptorNames)
		if ok && slices.Contains(names, name) {
			item.fail(name+" is in the key already", "name each descriptor once")
		}
		names = append(names, name)
	}
	return names
}

// match reads the conditions, sorted by name.
func (f field) match() []Condition {
	entries, ok := f.mapping("write the conditions as {plan: free}, or remove the field")
	if !ok {
		return nil
	}
	if len(entries) > MaxConditions {
		f.fail(fmt.Sprintf("%d conditions", len(entries)), fmt.Sprintf("use at most %d", MaxConditions))
	}
	conditions := make([]Condition, 0, len(entries))
	for _, e := range entries {
		key := field{d: f.d, node: e.key, path: e.value.path}
		key.checkName(e.name, descriptorNames)
		value, _ := e.value.text("write the value the descriptor must have")
		if len(value) > MaxConditionText {
			e.value.fail(fmt.Sprintf("%d bytes long", len(value)), fmt.Sprintf("match on a value of at most %d bytes", MaxConditionText))
		}
		conditions = append(conditions, Condition{e.name, value})
	}
	slices.SortFunc(conditions, func(a, b Condition) int { return strings.Compare(a.Name, b.Name) })
	return conditions
}

// weights reads the limit's own weights, parallel to regions.
func (f field) weights(regions []Region) []int64 {
	entries, ok := f.mapping("write the weights as {us-east: 1}, or remove the field to use those of the regions")
	if !ok || len(regions) == 0 {
		return nil
	}
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Name
	}
	weights, sum, before := make([]int64, len(regions)), int64(0), f.d.failed
	for _, e := range entries {
		i, found := slices.BinarySearch(names, e.name)
		if !found {
			f.d.fail(e.key.GetToken(), e.value.path, "no region has this name", didYouMean(e.name, names))
		}
		if w, ok := e.value.integer(0, MaxWeight); ok && found {
			weights[i] = w
			sum += w
		}
	}
	if sum == 0 && f.d.failed == before {
		f.fail("every weight is 0", "give at least one region a weight above 0")
	}
	return weights
}

// plainScalar returns the text of an unquoted number, word or null.
func plainScalar(node ast.Node) (string, bool) {
	switch n := node.(type) {
	case *ast.StringNode:
		return n.Value, n.Token.Type == token.StringType
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		return n.GetToken().Value, true
	case *ast.NullNode:
		return n.Token.Value, n.Token.Type == token.NullType
	}
	return "", false
}

// describe names what was found in words for an error.
func describe(node ast.Node) string {
	switch n := node.(type) {
	case *ast.StringNode:
		return strconv.Quote(truncate(n.Value))
	case *ast.MappingNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	}
	if text, ok := plainScalar(node); ok {
		return inWords(text)
	}
	return "an empty value"
}

// inWords returns unquoted text as it was written, unless it would not be
// readable on one line.
func inWords(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(truncate(text))
	}
	return truncate(text)
}

// truncate keeps errors short whatever the document holds.
func truncate(text string) string {
	const most = 40
	runes := []rune(text)
	if len(runes) <= most {
		return text
	}
	return string(runes[:most]) + "..."
}
