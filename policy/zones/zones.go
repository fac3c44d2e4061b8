// Package zones holds the rules of the world's time zones. They are part of the binary, so all
// nodes of one build have the same, whatever their machines have installed. (time.LoadLocation
// would prefer the machine's.)
//
// zoneinfo.zip is lib/time/zoneinfo.zip of the Go distribution: the IANA time zone database, which
// is in the public domain. Who replaces it changes [Version] too.
package zones

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// Version is the release of the IANA time zone database.
const Version = "2025c"

// MaxName is the length of the longest name of a zone, in bytes.
const MaxName = 32

//go:embed zoneinfo.zip
var database []byte

var opened = sync.OnceValues(func() (*zip.Reader, error) {
	return zip.NewReader(bytes.NewReader(database), int64(len(database)))
})

// loaded has the zones that were loaded, by name. There are no more than the database has.
var loaded sync.Map

// Load returns the rules of a zone. The name is one of the database, such as Europe/Berlin. It is
// the same *time.Location each time.
func Load(name string) (*time.Location, error) {
	if zone, ok := loaded.Load(name); ok {
		return zone.(*time.Location), nil
	}
	all, err := opened()
	if err != nil {
		return nil, fmt.Errorf("read the time zone database: %w; this binary is damaged: install it again", err)
	}
	if i := slices.IndexFunc(all.File, func(f *zip.File) bool { return f.Name == name }); i >= 0 {
		zone, err := read(all.File[i])
		if err != nil {
			return nil, fmt.Errorf("read time zone %s: %w; this binary is damaged: install it again", name, err)
		}
		first, _ := loaded.LoadOrStore(name, zone)
		return first.(*time.Location), nil
	}
	return nil, fmt.Errorf("no time zone is named %.40q", name)
}

func read(f *zip.File) (*time.Location, error) {
	open, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer open.Close()
	rules, err := io.ReadAll(open)
	if err != nil {
		return nil, err
	}
	return time.LoadLocationFromTZData(f.Name, rules)
}

// Names returns the names of all zones, sorted.
func Names() []string {
	all, err := opened()
	if err != nil {
		return nil
	}
	names := make([]string, 0, len(all.File))
	for _, f := range all.File {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}
