package policy

import (
	"fmt"
	"runtime/debug"
	"sync/atomic"
)

// Fault is a fault of quotad that a document brings to light: reading it panicked. The document is
// refused, and whoever reads it keeps the one before.
type Fault struct {
	File  string // as given to [Parse]
	Value string // of the panic
	At    []byte // the stack of the panic
}

// Error implements error.
func (f *Fault) Error() string {
	return fmt.Sprintf("%s: a fault of quotad, which cannot read this document (%s): it is not taken; "+
		"write it in another way, and report the fault with the document", f.File, f.Value)
}

// Stack returns the stack of the panic.
func (f *Fault) Stack() []byte { return f.At }

// testHookParse is called with each document that is read. Only tests set it.
var testHookParse atomic.Pointer[func(src []byte)]

// maxFault bounds the text of a panic that is kept: it may hold a value of the document.
const maxFault = 256

// survives turns a panic into a Fault. Defer it.
func survives(filename string, err *error) {
	if was := recover(); was != nil {
		text := fmt.Sprint(was)
		*err = &Fault{File: filename, Value: text[:min(len(text), maxFault)], At: debug.Stack()}
	}
}
