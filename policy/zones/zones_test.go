package zones_test

import (
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/policy/zones"
)

// The rules are those of the release that is said: Paraguay kept summer time from October 2024 on,
// which 2024b did not know yet. They are not the machine's, wherever that has them from.
func TestTheRulesAreTheBinarys(t *testing.T) {
	t.Setenv("ZONEINFO", t.TempDir())
	zone, err := zones.Load("America/Asuncion")
	suite.Must(t, err)
	_, offset := time.Date(2025, time.July, 1, 0, 0, 0, 0, time.UTC).In(zone).Zone()
	if again, _ := zones.Load("America/Asuncion"); again != zone || offset != -3*3600 {
		t.Errorf("offset %d in release %s, loaded again %v", offset, zones.Version, again == zone)
	}
}

func TestNamesThatNoZoneHas(t *testing.T) {
	for _, name := range []string{"", "Local", "utc", "Europe", "Europe/", "../UTC", "zoneinfo.zip"} {
		if zone, err := zones.Load(name); err == nil {
			t.Errorf("%q is %s", name, zone)
		}
	}
}
