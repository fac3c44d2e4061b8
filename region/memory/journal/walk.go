package journal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
)

// This file checks the structure of a bbolt file before bbolt reads it. bbolt maps the file and
// follows page numbers and offsets as it finds them. A wrong one makes it panic, read outside the
// mapping (which ends the process and cannot be recovered) or loop for ever. bbolt also uses the
// older of its two headers when the newer is damaged, and so loses a commit in silence.
//
// The format (bbolt version 2, in the machine's byte order) is a sequence of pages of pageSize
// bytes. Each has a 16-byte head {id 8, flags 2, count 2, overflow 4}. Then a header page has the
// meta record, a branch page has elements {offset 4, key length 4, page 8}, and a leaf page has
// elements {flags 4, offset 4, key length 4, value length 4}. Offsets count from the element's own
// start. A journal is written without a free list: every page that nothing refers to is free.

const (
	pageSize     = 4096 // of every journal, whatever the machine's own page size
	pageHead     = 16
	elementBytes = 16
	bucketHead   = 16 // a nested bucket's value: {root page 8, sequence 8}
	maxDepth     = 64 // of the tree; 4 levels hold a hundred million rows

	flagBranch = 0x01
	flagLeaf   = 0x02
	flagMeta   = 0x04
	flagBucket = 0x01 // of a leaf's element: its value is a nested bucket

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	noFreelist  = ^uint64(0)
)

// meta is the part of a header page that the check needs.
type meta struct {
	root  uint64 // page number of the root bucket
	pages uint64 // number of pages in use or free; there are none beyond
	txid  uint64
}

// checkStructure returns the first thing in a bbolt file of the given size that would make bbolt
// misread it. It reads every page in use once and trusts none of them.
func checkStructure(file io.ReaderAt, size int64) error {
	m, err := currentMeta(file)
	if err != nil {
		return err
	}
	if m.pages > uint64(size)/pageSize {
		return fmt.Errorf("the file has %d bytes and should have at least %d pages of %d",
			size, m.pages, pageSize)
	}
	w := walker{file: file, seen: make([]bool, m.pages)}
	w.seen[0], w.seen[1] = true, true
	return w.page(m.root, 0, nil, nil)
}

// currentMeta returns the newer header. bbolt writes them in turn, each in one
// disk sector, so even a power cut leaves both readable.
func currentMeta(file io.ReaderAt) (meta, error) {
	var metas [2]meta
	for i := range metas {
		m, err := readMeta(file, i)
		if err != nil {
			return meta{}, fmt.Errorf("header %d: %w", i, err)
		}
		metas[i] = m
	}
	older, newer := metas[0], metas[1]
	if older.txid > newer.txid {
		older, newer = newer, older
	}
	if newer.txid != older.txid+1 {
		return meta{}, fmt.Errorf("its headers are of commits %d and %d, "+
			"which do not follow one another", older.txid, newer.txid)
	}
	return newer, nil
}

func readMeta(file io.ReaderAt, index int) (meta, error) {
	const fields, sum = 56, 8
	b := make([]byte, pageHead+fields+sum)
	if _, err := file.ReadAt(b, int64(index)*pageSize); err != nil {
		return meta{}, fmt.Errorf("reading it: %w", err)
	}
	order := binary.NativeEndian
	if order.Uint64(b) != uint64(index) || order.Uint16(b[8:]) != flagMeta {
		return meta{}, errors.New("it is not a header page")
	}
	b = b[pageHead:]
	hash := fnv.New64a()
	hash.Write(b[:fields])
	switch {
	case order.Uint32(b) != metaMagic || order.Uint32(b[4:]) != metaVersion:
		return meta{}, errors.New("it is not that of a bbolt file written on this kind of machine")
	case order.Uint64(b[fields:]) != hash.Sum64():
		return meta{}, errors.New("its checksum does not match")
	case order.Uint32(b[8:]) != pageSize || order.Uint64(b[32:]) != noFreelist:
		return meta{}, errors.New("it is not that of a journal: page size or free list differ")
	}
	return meta{root: order.Uint64(b[16:]), pages: order.Uint64(b[40:]),
		txid: order.Uint64(b[48:])}, nil
}

// walker visits each page of the tree once.
type walker struct {
	file io.ReaderAt
	seen []bool // by page number
}

// page checks the page and everything below it. The page's first key must be low, and all its keys
// less than high; nil is no bound.
func (w *walker) page(id uint64, depth int, low, high []byte) error {
	if depth > maxDepth {
		return fmt.Errorf("page %d: the tree is deeper than %d pages", id, maxDepth)
	}
	b, err := w.read(id)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	keys, err := pageKeys(b, low, high)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	if isLeaf(b) {
		return w.nested(id, b, depth)
	}
	if len(keys) == 0 {
		return fmt.Errorf("page %d: it is a branch without children", id)
	}
	for i, key := range keys {
		upper := high
		if i+1 < len(keys) {
			upper = keys[i+1]
		}
		child := binary.NativeEndian.Uint64(b[pageHead+i*elementBytes+8:])
		if err := w.page(child, depth+1, key, upper); err != nil {
			return err
		}
	}
	return nil
}

// read returns the page with its overflow and marks it as seen.
func (w *walker) read(id uint64) ([]byte, error) {
	if id >= uint64(len(w.seen)) {
		return nil, fmt.Errorf("it is referred to, but the file has %d pages", len(w.seen))
	}
	b := make([]byte, pageSize)
	if _, err := w.file.ReadAt(b, int64(id)*pageSize); err != nil {
		return nil, fmt.Errorf("reading it: %w", err)
	}
	overflow := uint64(binary.NativeEndian.Uint32(b[12:]))
	if binary.NativeEndian.Uint64(b) != id {
		return nil, errors.New("it carries another page's number")
	}
	if overflow >= uint64(len(w.seen))-id {
		return nil, errors.New("it reaches beyond the end of the file")
	}
	for i := id; i <= id+overflow; i++ {
		if w.seen[i] {
			return nil, fmt.Errorf("page %d is referred to twice", i)
		}
		w.seen[i] = true
	}
	if overflow > 0 {
		b = make([]byte, (1+overflow)*pageSize)
		if _, err := w.file.ReadAt(b, int64(id)*pageSize); err != nil {
			return nil, fmt.Errorf("reading it: %w", err)
		}
	}
	return b, nil
}

// nested checks the buckets that a leaf page holds.
func (w *walker) nested(id uint64, b []byte, depth int) error {
	for i := range pageCount(b) {
		flags, value := leafValue(b, i)
		switch {
		case flags == 0:
			continue
		case flags != flagBucket:
			return fmt.Errorf("page %d: element %d has unknown flags %#x", id, i, flags)
		case len(value) < bucketHead:
			return fmt.Errorf("page %d: element %d is a bucket cut short", id, i)
		}
		if err := w.bucket(value, depth); err != nil {
			return fmt.Errorf("page %d: element %d: %w", id, i, err)
		}
	}
	return nil
}

// bucket checks a nested bucket: a tree of its own, or, if small, a leaf page
// inside the value. Such a page holds no further buckets.
func (w *walker) bucket(value []byte, depth int) error {
	if root := binary.NativeEndian.Uint64(value); root != 0 {
		return w.page(root, depth+1, nil, nil)
	}
	inline := value[bucketHead:]
	if len(inline) < pageHead || !isLeaf(inline) {
		return errors.New("the bucket within is not a leaf page")
	}
	if _, err := pageKeys(inline, nil, nil); err != nil {
		return fmt.Errorf("the bucket within: %w", err)
	}
	for i := range pageCount(inline) {
		if flags, _ := leafValue(inline, i); flags != 0 {
			return fmt.Errorf("the bucket within: element %d has unknown flags %#x", i, flags)
		}
	}
	return nil
}

// pageKeys returns the keys of a branch or leaf page. It checks that all elements lie within the
// page, and that the keys ascend from low to below high. The first key must be equal to low, not
// only sort right: when bbolt replaces a page, it finds the old one in the page above by its first
// key. With another key there, both pages would stay in the tree.
func pageKeys(b, low, high []byte) ([][]byte, error) {
	flags := binary.NativeEndian.Uint16(b[8:])
	if flags != flagBranch && flags != flagLeaf {
		return nil, fmt.Errorf("its type %#x is neither branch nor leaf", flags)
	}
	count := pageCount(b)
	if pageHead+count*elementBytes > len(b) {
		return nil, fmt.Errorf("it has no room for its %d elements", count)
	}
	keys := make([][]byte, count)
	for i := range keys {
		start, keyBytes, valueBytes := element(b, i)
		if start+keyBytes+valueBytes > uint64(len(b)) {
			return nil, fmt.Errorf("element %d reaches beyond the page", i)
		}
		keys[i] = b[start : start+keyBytes]
		if i > 0 && bytes.Compare(keys[i-1], keys[i]) >= 0 {
			return nil, fmt.Errorf("the keys of elements %d and %d are out of order", i-1, i)
		}
	}
	if low != nil && (count == 0 || !bytes.Equal(keys[0], low)) ||
		high != nil && (count == 0 || bytes.Compare(keys[count-1], high) >= 0) {
		return nil, errors.New("its keys do not fit the page above it")
	}
	return keys, nil
}

func isLeaf(b []byte) bool   { return binary.NativeEndian.Uint16(b[8:]) == flagLeaf }
func pageCount(b []byte) int { return int(binary.NativeEndian.Uint16(b[10:])) }

// element returns where the i-th element's key starts in the page, and the lengths of its key and
// value. The sums cannot overflow, because each part has 32 bits.
func element(b []byte, i int) (start, keyBytes, valueBytes uint64) {
	at := pageHead + i*elementBytes
	field := func(n int) uint64 { return uint64(binary.NativeEndian.Uint32(b[at+4*n:])) }
	if isLeaf(b) {
		return uint64(at) + field(1), field(2), field(3)
	}
	return uint64(at) + field(0), field(1), 0
}

// leafValue returns an element of a leaf page that pageKeys has checked.
func leafValue(b []byte, i int) (flags uint32, value []byte) {
	start, keyBytes, valueBytes := element(b, i)
	flags = binary.NativeEndian.Uint32(b[pageHead+i*elementBytes:])
	return flags, b[start+keyBytes : start+keyBytes+valueBytes]
}
