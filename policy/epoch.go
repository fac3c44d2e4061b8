package policy

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strconv"
)

// Epoch names one document. Two documents with one version and different meaning have different
// epochs, so nobody can take one for the other. Epochs are compared with ==. The zero Epoch means
// no document.
type Epoch struct {
	// Version is the number the operator gave.
	Version int64
	// Digest is the SHA-256 of what the document means.
	Digest [sha256.Size]byte
}

// String returns the version and the first 12 hexadecimal digits of the digest,
// as in "3-1a2b3c4d5e6f". It is for people; machines compare whole epochs.
func (e Epoch) String() string {
	if e.IsKept() {
		return fmt.Sprintf("%dk-%x", e.Version-KeptVersion, e.Digest[:6])
	}
	return fmt.Sprintf("%d-%x", e.Version, e.Digest[:6])
}

// IsKept reports whether the epoch is of what is kept of folded documents. Its text has a k behind the
// highest version that is folded.
func (e Epoch) IsKept() bool { return e.Version >= KeptVersion }

// Epoch returns the name of the document.
func (d *Document) Epoch() Epoch { return d.epoch }

func (d *Document) computeEpoch() Epoch {
	return Epoch{Version: d.Version, Digest: sha256.Sum256(d.canonical())}
}

// canonicalForm changes whenever the encoding below does. Otherwise one document under two
// encodings would look like two documents under one.
const canonicalForm = "quotad limits 3"

// canonical encodes the meaning of the document: with every default filled in, the regions,
// conditions and weights in the order of their names, and nothing of the layout. Limits and keys
// keep the order of the file, because decisions and bucket IDs show it.
func (d *Document) canonical() []byte {
	var e encoding
	e.text(canonicalForm)
	e.integer(d.Version)
	e.integer(int64(len(d.Regions)))
	for _, r := range d.Regions {
		e.text(r.Name)
		e.integer(r.Weight)
	}
	e.integer(int64(len(d.Limits)))
	for i := range d.Limits {
		e.limit(&d.Limits[i])
	}
	for _, name := range d.Fenced { // documents without any keep their epoch
		e.text("fenced")
		e.text(name)
	}
	for _, name := range d.Removed {
		e.text("removed")
		e.text(name)
	}
	for _, name := range slices.Sorted(maps.Keys(d.Returned)) {
		e.text("returned")
		e.text(name)
		e.integer(d.Returned[name])
	}
	e.domains(d) // and so do those without any of these
	return e
}

// encoding is a sequence of netstrings, which can be read in one way only.
type encoding []byte

func (e *encoding) text(s string)   { *e = appendNetstring(*e, s) }
func (e *encoding) integer(n int64) { e.text(strconv.FormatInt(n, 10)) }

func (e *encoding) limit(l *Limit) {
	e.text(l.Name)
	e.text(l.Domain)
	e.integer(int64(len(l.Key)))
	for _, name := range l.Key {
		e.text(name)
	}
	e.integer(int64(len(l.Match)))
	for _, c := range l.Match {
		e.text(c.Name)
		e.text(c.Value)
	}
	e.text(string(l.Algorithm))
	e.integer(int64(l.Limit))
	if l.Period != "" { // documents from before it existed keep their epoch
		e.text(string(l.Period))
	} else {
		e.integer(int64(l.Window))
	}
	e.integer(int64(l.Burst))
	for _, w := range l.Weights { // one for each region
		e.integer(int64(w))
	}
	for _, s := range settings {
		if s.coded == codedFirst {
			e.text(s.code(l))
		}
	}
	last := strconv.FormatBool(l.Shadow)
	if l.Consistency != Exact { // documents from before it existed keep their epoch
		last += " " + string(l.Consistency)
	}
	if more := l.further(); len(more) > 0 {
		last += "|" + string(more)
	}
	e.text(last)
}

// further encodes what limits of before did not have. It is empty for those that do not have it.
func (l *Limit) further() (e encoding) {
	if l.Entries != nil {
		e.path(l.Entries)
	}
	if l.Alias != l.Name {
		e.text("alias")
		e.text(l.Alias)
	}
	for _, alias := range l.Replaces {
		e.text("replaces")
		e.text(alias)
	}
	if l.Metadata != nil {
		e.text("metadata")
		e.text(l.Metadata.String())
	}
	for _, s := range settings {
		if s.coded != codedApart || s.value(l) == s.usual {
			continue
		}
		e.text(s.name)
		if code := s.code(l); code != "true" {
			e.text(code)
		}
	}
	if l.MaxDebt > 0 {
		e.text("max_debt")
		e.integer(int64(l.MaxDebt))
	}
	if l.SettleWithin != l.usualSettle() {
		e.text("settle_within")
		e.integer(int64(l.SettleWithin))
	}
	if a := l.Assign; a != nil {
		e.text("assign")
		e.integer(int64(a.TTL))
		e.integer(int64(a.NoAssignment))
		e.integer(int64(a.MaxBurst))
	}
	return e
}

// domains encodes what holds for domains as a whole.
func (e *encoding) domains(d *Document) {
	if d.OnNoLimit != NoLimitAllow {
		e.text("on_no_limit")
		e.text(string(d.OnNoLimit))
	}
	for _, r := range d.Domains {
		e.text("domain")
		e.text(r.Name)
		e.text(string(r.OnNoLimit))
		e.text(string(r.Descriptors))
		if r.NegativeHits == GiveBackHits {
			e.text("negative_hits")
		}
	}
	for _, x := range d.Exempt {
		e.text("exempt")
		e.text(x.Domain)
		e.text(strconv.FormatBool(x.Unlimited))
		e.path(x.Entries)
		if x.Deny {
			e.text("deny")
		}
		if x.Window > 0 {
			e.text("window")
			e.integer(int64(x.Window))
			e.text(x.Alias)
			e.text(strconv.FormatBool(x.Alternative))
		}
		for _, alias := range x.Replaces {
			e.text("replaces")
			e.text(alias)
		}
		if x.Metadata != nil {
			e.text("metadata")
			e.text(x.Metadata.String())
		}
	}
}

func (e *encoding) path(all []Entry) {
	e.text("entries")
	e.integer(int64(len(all)))
	for _, x := range all {
		e.text(x.String())
		e.text(strconv.FormatBool(x.Shared))
	}
}
