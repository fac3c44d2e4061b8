// Package nodeconfig reads the settings of a node.
//
// Each setting is a field of [Config]. One table (config.go) gives it a name, a default, a text for
// the help and docs/reference/settings.md, and the function that reads it. A setting can be given
// in the node file, as an environment variable, or as a flag. Flags override variables, variables
// override the file, and the file overrides defaults.
//
// [Layers.Read] puts the layers together and reports all wrong values at once, each with its place
// and its remedy. It also checks values that another layer overrides. If all values are right,
// [Config.Validate] checks what depends on several settings.
package nodeconfig
