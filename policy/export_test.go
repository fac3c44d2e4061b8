package policy

import "bytes"

// PlantPanic has reading a document panic that contains a text, until remove is called.
func PlantPanic(text string) (remove func()) {
	hook := func(src []byte) {
		if bytes.Contains(src, []byte(text)) {
			panic("planted: " + text)
		}
	}
	testHookParse.Store(&hook)
	return func() { testHookParse.Store(nil) }
}
