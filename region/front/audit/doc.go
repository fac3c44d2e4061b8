// Package audit writes down every act that can exceed or cut a limit: who did it, from where, to
// what, and what came of it. Each act is one line of JSON, written once, when its outcome is known.
//
// The audit log is a stream of its own, because it names keys. The node's ordinary log never does.
package audit
