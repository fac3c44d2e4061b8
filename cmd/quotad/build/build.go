// Package build says what this binary was built from.
package build

import (
	"fmt"
	"runtime/debug"

	"github.com/quotad/quotad/policy/zones"
)

// Info is what this binary was built from.
type Info struct {
	Version  string `json:"version"` // of the module; "(devel)" outside a release
	Commit   string `json:"commit"`  // empty if it was not built from a repository
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	// TimeZones is the release of the IANA time zone database that it has.
	TimeZones string `json:"time_zones"`
}

// This returns the build of the running binary.
func This() Info {
	b := Info{Version: "(unknown)", TimeZones: zones.Version}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	b.Go = info.GoVersion
	if info.Main.Version != "" {
		b.Version = info.Main.Version
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the build on one line.
func (b Info) String() string {
	commit := b.Commit
	switch {
	case commit == "":
		commit = "unknown"
	case b.Modified:
		commit += " with changes"
	}
	return fmt.Sprintf("quotad %s, commit %s, %s", b.Version, commit, b.Go)
}
