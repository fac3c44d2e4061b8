// Package scenarios holds the scenarios that quotad brings along; package
// scenario says what is in a file.
package scenarios

import "embed"

// Files are NAME.yaml for each scenario.
//
//go:embed *.yaml
var Files embed.FS
