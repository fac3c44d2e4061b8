package policy

import (
	"fmt"
	"slices"
	"strings"

	"github.com/quotad/quotad/algorithms"
	"github.com/quotad/quotad/policy/strictyaml"
	"github.com/quotad/quotad/quantity"
)

// documentKind describes a limits document as a file.
var documentKind = strictyaml.Kind{
	MaxBytes: MaxDocumentBytes,
	TooLarge: "remove what is not a limit, or serve fewer limits from one file",
	Empty:    mendFile,
	TooDeep:  "the document needs only version, regions and limits, each entry of limits one mapping",
}

const mendFile = "write version, regions and limits"

// Parse reads and checks a document. The filename is used in positions only. Parse refuses a
// document with any error as a whole. The error is then a [strictyaml.Errors] with every problem
// found, in the order of the file. If reading it panics, the error is a [*Fault]. The document keeps
// a copy of src.
func Parse(filename string, src []byte) (doc *Document, err error) {
	defer survives(filename, &err)
	return parse(filename, src)
}

func parse(filename string, src []byte) (*Document, error) {
	if hook := testHookParse.Load(); hook != nil {
		(*hook)(src)
	}
	root, err := strictyaml.Read(filename, src, documentKind)
	if err != nil {
		return nil, err
	}
	doc := readDocument(root)
	if err := root.Err(); err != nil {
		return nil, err
	}
	for i := range doc.Limits {
		doc.Limits[i].id = idTextOf(&doc.Limits[i])
	}
	doc.epoch = doc.computeEpoch()
	doc.source = slices.Clone(src)
	return doc, nil
}

var (
	documentFields = []string{"version", "regions", "fenced", "removed", "returned", "on_no_limit", "domains", "limits", "exempt"}
	regionFields   = []string{"weight"}
	limitFields    = append([]string{
		"name", "alias", "domain", "key", "match", "entries", "replaces", "metadata", "algorithm", "limit", "window", "timezone", "starts", "burst", "weights",
		"max_debt", "settle_within", "assign",
	}, settingNames()...)
)

func readDocument(root strictyaml.Value) *Document {
	doc := &Document{}
	for _, setting := range []string{"data_dir", "policy", "redis"} {
		v, is := root.Peek(setting)
		if _, listed := root.Peek("limits"); is && !listed {
			root.FailAt(v.KeyPos(), "this is a node file, and no limits document",
				"give it to --config, and here the document that its policy names")
			return doc
		}
	}
	o, ok := root.Object(mendFile, documentFields)
	if !ok {
		return doc
	}
	doc.Version = strictyaml.Needed(o, "version", "number the document, from 1 upwards, and raise the number with every change",
		strictyaml.Whole[int64](1, MaxVersion))
	doc.Regions = strictyaml.Needed(o, "regions", "name the regions with their weights: {us-east: {weight: 1}}", readRegions)
	if f, ok := o.Field("removed"); ok {
		doc.Removed = readRemoved(f, doc.Regions)
	}
	if f, ok := o.Field("fenced"); ok {
		doc.Fenced = readFenced(f, doc)
	}
	if f, ok := o.Field("returned"); ok {
		doc.Returned = readReturned(f, doc)
	}
	doc.OnNoLimit = strictyaml.Optional(o, "on_no_limit", NoLimitAllow, readOnNoLimit)
	if f, ok := o.Field("domains"); ok {
		doc.Domains = readDomains(f, doc.OnNoLimit)
	}
	doc.Exempt = strictyaml.Optional(o, "exempt", nil, readExemptions)
	if f, ok := o.Required("limits", "list at least one limit"); ok {
		readLimits(f, doc)
	}
	return doc
}

// readRegions reads the regions, sorted by name. It keeps a region whose weight is wrong, so that
// limits that name the region are not reported as well.
func readRegions(f strictyaml.Value) []Region {
	const mend = "name each region with its weight: {us-east: {weight: 1}}"
	entries, ok := f.Entries(mend)
	if !ok {
		return nil
	}
	if len(entries) == 0 {
		f.Fail("empty", mend)
	}
	if len(entries) > MaxRegions {
		f.Fail(fmt.Sprintf("%d regions", len(entries)), fmt.Sprintf("name at most %d", MaxRegions))
	}
	regions := make([]Region, 0, len(entries))
	for _, e := range entries {
		checkName(e.Key, e.Name, regionNames)
		region := Region{Name: e.Name}
		if o, ok := e.Value.Object("write {weight: 1}", regionFields); ok {
			region.Weight = strictyaml.Needed(o, "weight", "give the region a weight: {weight: 1}",
				strictyaml.Whole[int64](1, MaxWeight))
		}
		regions = append(regions, region)
	}
	slices.SortFunc(regions, func(a, b Region) int { return strings.Compare(a.Name, b.Name) })
	return regions
}

// readLimits reads the entries and checks them against one another.
func readLimits(f strictyaml.Value, doc *Document) {
	items, ok := f.List("list the limits, each starting with a dash")
	if !ok {
		return
	}
	if len(items) == 0 {
		f.Fail("empty", "list at least one limit")
	}
	doc.Limits = make([]Limit, len(items))
	var valid []source
	for i, item := range items {
		l := &doc.Limits[i]
		l.Index = i
		l.Pos = item.Pos()
		before := item.Failures()
		o := readLimit(item, l, doc)
		if item.Failures() == before {
			valid = append(valid, source{l, o})
		}
	}
	checkNames(valid)
	checkPaths(valid, doc.Exempt)
	if f.Failures() == 0 { // warnings rely on what a whole document promises
		doc.warn(valid)
	}
}

// readLimit reads one entry into l.
func readLimit(f strictyaml.Value, l *Limit, doc *Document) strictyaml.Object {
	const mend = "write the fields of a limit: name, domain, key, algorithm, limit, window"
	o, ok := f.Object(mend, limitFields)
	if !ok {
		return o
	}
	l.Name = strictyaml.Needed(o, "name", "name the limit, such as account-minute", limitNames.read)
	l.Domain = strictyaml.Needed(o, "domain", "name the domain whose requests it limits, such as api", domainNames.read)
	readMatching(o, l)
	l.Algorithm = strictyaml.Needed(o, "algorithm", "write how units are counted, such as fixed_window",
		strictyaml.Word(algorithms.Kinds...))
	readCapacity(o, l)
	readSharing(o, l, doc)
	readSettings(o, l)
	if f, ok := o.Field("assign"); ok {
		readAssign(f, l)
	}
	return o
}

// readMatching reads to which requests the limit applies, and what else it is called.
func readMatching(o strictyaml.Object, l *Limit) {
	if f, ok := o.Field("entries"); ok {
		l.setEntries(readEntries(f))
		for _, other := range []string{"key", "match"} {
			if f, ok := o.Field(other); ok {
				f.Fail("entries say it already", "remove it, or entries")
			}
		}
	} else {
		l.Key = strictyaml.Needed(o, "key", mendKey, readKey)
		l.Match = strictyaml.Optional(o, "match", nil, readMatch)
	}
	l.Alias = strictyaml.Optional(o, "alias", l.Name, readTold)
	if f, ok := o.Field("replaces"); ok {
		l.Replaces = readReplaces(f, l.Alias)
	}
	l.Metadata = strictyaml.Optional(o, "metadata", nil, readMetadata)
}

// MaxReplaces bounds the aliases that one limit replaces.
const MaxReplaces = 16

func readAlias(f strictyaml.Value) string {
	text, ok := f.Text("write the name by which Envoy is to be told of the limit")
	if ok && (text == "" || len(text) > MaxAliasBytes) {
		f.Fail(fmt.Sprintf("%d bytes long", len(text)), fmt.Sprintf("write 1 to %d bytes", MaxAliasBytes))
	}
	return text
}

// readTold reads an alias that may be empty: then Envoy is told no name.
func readTold(f strictyaml.Value) string {
	if text, ok := f.IsText(); ok && text == "" {
		return ""
	}
	return readAlias(f)
}

// readReplaces reads the aliases of the limits that do not apply where the one that is called own
// does, or an exemption.
func readReplaces(f strictyaml.Value, own string) []string {
	items, ok := f.List("list the aliases of limits, such as [per-user]")
	if !ok {
		return nil
	}
	if len(items) == 0 || len(items) > MaxReplaces {
		f.Fail(fmt.Sprintf("%d aliases", len(items)), fmt.Sprintf("name 1 to %d", MaxReplaces))
	}
	var all []string
	for _, item := range items {
		alias := readAlias(item)
		switch {
		case alias == own && own != "":
			item.Fail("a limit cannot replace itself", "name another one")
		case slices.Contains(all, alias):
			item.Fail(fmt.Sprintf("%q is named twice", alias), "remove one")
		}
		all = append(all, alias)
	}
	return all
}

// readSharing reads how regions share the limit.
func readSharing(o strictyaml.Object, l *Limit, doc *Document) {
	if f, ok := o.Field("weights"); ok {
		l.Weights = readWeights(f, doc.Regions)
	} else {
		l.Weights = make([]quantity.Units, len(doc.Regions))
		for i, r := range doc.Regions {
			l.Weights[i] = quantity.Units(r.Weight)
		}
	}
	passOverFenced(o, l, doc)
}

const mendKey = "list the descriptors that make the key, such as [account]"

// readKey reads the list of descriptor names.
func readKey(f strictyaml.Value) []string {
	items, ok := f.List(mendKey)
	if !ok {
		return nil
	}
	if len(items) == 0 {
		f.Fail("empty", mendKey)
	}
	if len(items) > MaxKeyNames {
		f.Fail(fmt.Sprintf("%d names", len(items)), fmt.Sprintf("use at most %d", MaxKeyNames))
	}
	names := make([]string, 0, len(items))
	for _, item := range items {
		name, ok := readName(item, descriptorNames)
		if ok && slices.Contains(names, name) {
			item.Fail(name+" is in the key already", "name each descriptor once")
		}
		names = append(names, name)
	}
	return names
}

// readMatch reads the conditions, sorted by name.
func readMatch(f strictyaml.Value) []Condition {
	entries, ok := f.Entries("write the conditions as {plan: free}, or remove the field")
	if !ok {
		return nil
	}
	if len(entries) > MaxConditions {
		f.Fail(fmt.Sprintf("%d conditions", len(entries)), fmt.Sprintf("use at most %d",
			MaxConditions))
	}
	conditions := make([]Condition, 0, len(entries))
	for _, e := range entries {
		checkName(e.Key, e.Name, descriptorNames)
		value, _ := e.Value.Text("write the value the descriptor must have")
		checkConditionText(e.Value, value)
		conditions = append(conditions, Condition{e.Name, value})
	}
	slices.SortFunc(conditions, func(a, b Condition) int { return strings.Compare(a.Name, b.Name) })
	return conditions
}

// checkConditionText refuses a value to match on that is too long.
func checkConditionText(f strictyaml.Value, text string) {
	if len(text) > MaxConditionText {
		f.Fail(fmt.Sprintf("%d bytes long", len(text)),
			fmt.Sprintf("match on a value of at most %d bytes", MaxConditionText))
	}
}

// readWeights reads the limit's own weights, parallel to regions.
func readWeights(f strictyaml.Value, regions []Region) []quantity.Units {
	entries, ok := f.Entries(
		"write the weights as {us-east: 1}, or remove the field to use those of the regions")
	if !ok || len(regions) == 0 {
		return nil
	}
	names := make([]string, len(regions))
	for i, r := range regions {
		names[i] = r.Name
	}
	weights, sum, before := make([]quantity.Units, len(regions)), quantity.Units(0), f.Failures()
	for _, e := range entries {
		i, found := slices.BinarySearch(names, e.Name)
		if !found {
			e.Key.Fail("no region has this name", strictyaml.DidYouMean(e.Name, names))
		}
		w := quantity.Units(e.Value.Integer(0, MaxWeight))
		if found {
			weights[i] = w
			sum += w
		}
	}
	if sum == 0 && f.Failures() == before {
		f.Fail("every weight is 0", "give at least one region a weight above 0")
	}
	return weights
}
