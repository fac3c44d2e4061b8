package policy

import _ "embed"

//go:embed limits.schema.json
var schema string

// Schema returns the JSON Schema (draft 2020-12) of limits documents, for editors. It refuses
// nothing that Parse accepts. Parse refuses more: what a schema cannot say, such as a name that is
// given twice, a number that is not written in plain digits, or a window out of range.
func Schema() string { return schema }
