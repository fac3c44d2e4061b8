// Package scenarios holds the scenarios that come with quotad. Package scenario defines their
// format.
package scenarios

import "embed"

// Files are NAME.yaml for each scenario.
//
//go:embed *.yaml
var Files embed.FS
