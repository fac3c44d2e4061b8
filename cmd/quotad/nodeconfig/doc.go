// Package nodeconfig reads the settings of a node.
//
// Each setting is a field of [Config]. One table beside it (config.go) gives it a name, a default,
// words for the help and for the README, and the way it is read. A setting can be given in the
// node file, as a variable of the environment, or as a flag. Flags go before variables, variables
// before the file, and the file before defaults.
//
// [Layers.Read] puts the layers together and reports everything that is wrong at once, each with
// its place and its remedy. A value that another layer overrides is checked, too.
// [Config.Validate] checks what several settings must agree on.
package nodeconfig
