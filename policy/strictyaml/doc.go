// Package strictyaml reads the YAML files that operators write: limits documents, node files,
// scenarios and nodes files of a deployment.
//
// [Read] takes a file of one [Kind] apart and returns its root as a [Value]. The methods of a
// value read it as one type. They report what is wrong with it, and go on, so that [Value.Err] has
// every problem of the file at once. Each problem is an [*Error]: file, line, column, field, what
// is wrong and what to write instead.
//
// The reader is strict. It refuses anchors, aliases, merge keys, tags, directives, explicit keys,
// block text, tabs that indent, a second document, a name given twice and a field that nobody
// knows. A file is bounded in its bytes and in its shape, so that no file keeps a node busy.
//
// A file of a foreign kind, which another program reads too, may have more: what expand.go replaces
// by what it stands for, and what foreign.go reads. [Value.Remarks] has what that reader passed over.
package strictyaml
