package report

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

var pages = flag.String("pages", "", "write the sample pages into this directory, to be looked at")

// hostile is a name that tries to end a script, change the direction of text, start a line, and be
// invalid text.
const hostile = "</script><svg onload=alert(1)>\u202egnp.exe\n\r\x00\xff\"'&]]>"

// samples are made-up runs, one for each shape of page.
func samples() map[string]Run {
	return map[string]Run{
		"held":    heldRun(),
		"broken":  brokenRun(),
		"wide":    wideRun(),
		"many":    manyRun(),
		"bucket":  bucketRun(),
		"month":   monthRun(),
		"empty":   {},
		"hostile": hostileRun(),
	}
}

// sampleRun makes a run with a fixed window of 10 s and some regions. demand returns what each
// region offers in a second, and cut whether region 0 is cut off.
func sampleRun(regions []string, limit int64, length time.Duration,
	demand func(region int, second int) int64, cut Band) Run {
	l := Limit{Name: "requests-per-account", Key: "account-42", Algorithm: "fixed_window",
		Units: limit, Window: 10 * time.Second}
	n := len(regions)
	fixed := limit / int64(n)
	seconds := int(length / time.Second)
	used := make([]int64, n)
	var window Cell
	for s := range seconds {
		now := time.Duration(s) * time.Second
		if s%10 == 0 {
			if s > 0 {
				l.Cells = append(l.Cells, window)
			}
			window = Cell{From: now, Length: 10 * time.Second, Admitted: make([]int64, n)}
			clear(used)
		}
		slot := Slot{At: now, Length: time.Second, Offered: make([]int64, n),
			Admitted: make([]int64, n), Denied: make([]int64, n), Unknown: make([]int64, n)}
		apart := now >= cut.From && now < cut.To
		busy := int64(0)
		for i := range n {
			busy += demand(i, s)
		}
		for i := range n {
			share := fixed
			if !apart && s%10 > 0 && busy > 0 {
				share = fixed/4 + demand(i, s)*(limit-fixed/4*int64(n))/busy
			}
			share = max(share, used[i])
			offered := demand(i, s)
			admitted := min(offered, share-used[i])
			if apart && i == 0 && now < cut.From+2*time.Second {
				slot.Unknown[i] = offered / 20
				offered -= slot.Unknown[i]
				admitted = min(admitted, offered)
				window.Unknown += slot.Unknown[i] / 4
			}
			used[i] += admitted
			slot.Offered[i] = offered + slot.Unknown[i]
			slot.Admitted[i], slot.Denied[i] = admitted, offered-admitted
			window.Admitted[i] += admitted
			for tick := range 5 {
				l.Shares = append(l.Shares,
					Share{At: now + time.Duration(tick)*200*time.Millisecond, Region: i,
						Share:       share,
						Entitlement: fixed, Degraded: now >= cut.From+3*time.Second &&
							now < cut.To+time.Second})
			}
		}
		l.Slots = append(l.Slots, slot)
	}
	l.Cells = append(l.Cells, window)
	for _, c := range l.Cells {
		l.Max = max(l.Max, total(total(c.Admitted...), c.Unknown))
		l.Pooled += min(limit, l.demandIn(c))
		l.FalseDenials += max(0, min(limit, l.demandIn(c))-total(c.Admitted...))
	}
	l.Excess = over(l.Max, limit)
	return Run{
		Began: time.Date(2026, 3, 14, 9, 26, 53, 0, time.UTC), Length: length, Seed: 7,
		Version: "v1.4.0",
		Regions: regions, Limits: []Limit{l},
		Facts: []Fact{{"Regions", fmt.Sprint(n)},
			{"Nodes", fmt.Sprintf("%d, two in each region", 2*n)},
			{"Redis", "7.0.15, one in each region"},
			{"Machine", "linux/amd64, 2 cores"}, {"Go", "go1.26"}},
	}
}

// demandIn is what was offered in the seconds of a cell.
func (l Limit) demandIn(c Cell) int64 {
	var sum int64
	for _, s := range l.Slots {
		if s.At >= c.From && s.At < c.From+c.Length {
			sum = total(sum, total(s.Offered...))
		}
	}
	return sum
}

func heldRun() Run {
	cut := Band{From: 14 * time.Second, To: 24 * time.Second, Name: "eu cut off",
		About: "nothing passes between eu and the other regions"}
	r := sampleRun([]string{"eu-west", "us-east", "ap-south"}, 1000, 40*time.Second,
		func(region, second int) int64 {
			return []int64{70, 28, 9}[region] + int64(second*(region+3)%7) - 3
		}, cut)
	r.Title = "Full split: one region cut off for ten seconds"
	r.About = "All traffic between eu-west and the others is dropped for 10 s while eu-west needs more than its fixed split. The ceiling must hold throughout, every region falls back to its fixed split, and rights move again after the heal."
	r.Command = "quotad chaos run full-split --seed 7 --report full-split.html"
	r.OK, r.Verdict = true,
		"The ceiling held in every window, and rights moved again 0.6 s after the heal."
	r.Bands = []Band{cut}
	r.Steps = []Step{
		{At: 0, Text: "load: eu-west 70/s, us-east 28/s, ap-south 9/s"},
		{At: 14 * time.Second, Text: "cut eu-west from all other regions"},
		{At: 24 * time.Second, Text: "heal",
			Outcome: "all regions saw each other again after 0.4 s"},
	}
	r.Expectations = []Expectation{
		{"The ceiling holds in every window, unknown outcomes counted as admitted", "at most 1,000",
			fmt.Sprint(r.Limits[0].Max), true},
		{"Admitted, of what one limiter for all regions would admit, before the cut",
			"at least 95 %", "97.3 %", true},
		{"eu-west is at its fixed split during the cut", "333 from 20 s to 24 s", "333", true},
		{"Degraded is seen in every region", "within 4 s of the cut", "3.1 s", true},
		{"Rights move again after the heal", "within 2 s", "0.6 s", true},
		{"The longest answer", "at most 250 ms", "41 ms", true},
		{"No node ended by itself", "0", "0", true},
	}
	r.Notes = []string{"6 requests of unknown outcome were counted as admitted in the window that they may have fallen in."}
	return r
}

func brokenRun() Run {
	r := heldRun()
	r.Title = "Stale failover: an old replica is promoted"
	r.About = "The Redis of us-east fails over to a replica that lags 2 s behind, while the old primary goes on taking writes."
	r.OK, r.Verdict = false,
		"The ceiling was broken: 1,214 units admitted in a window of 1,000, which is 94 above the printed bound."
	r.Bands = []Band{{From: 12 * time.Second, To: 27 * time.Second,
		Name: "two primaries in us-east"}, {From: 12 * time.Second, To: 12 * time.Second,
		Name: "replica promoted"},
		{From: 31 * time.Second, To: 31 * time.Second, Name: "kill -9 of us-east/b"},
		{From: 31 * time.Second, To: 34 * time.Second, Name: "us-east/b away"}}
	r.Steps = nil
	l := &r.Limits[0]
	l.Cells[1].Admitted[1] += 448
	l.Cells[1].Unknown = 57
	l.Cells[2].Admitted[1] += 170
	l.Max = total(total(l.Cells[1].Admitted...), l.Cells[1].Unknown)
	l.Excess, l.Allowed = l.Max-1000, 120
	l.Allowance = "share - used + lag in the cell of the fork = 333 - 273 + 60, for us-east."
	r.Expectations[0] = Expectation{"The ceiling, with the printed bound for this fault",
		"at most 1,120", "1,214 in the window from 10 s to 20 s", false}
	r.Expectations[5].OK, r.Expectations[5].Got = false, "1.9 s"
	return r
}

func wideRun() Run {
	var regions []string
	for i := range 10 {
		regions = append(regions, []string{"eu-west-1", "eu-north-1", "us-east-1", "us-west-2",
			"ap-south-1", "ap-northeast-1", "sa-east-1", "af-south-1", "me-central-1",
			"ca-central-1"}[i])
	}
	r := sampleRun(regions, 12000, 130*time.Second, func(region, second int) int64 {
		return int64(40 + 35*((region*7+second/20)%5))
	}, Band{From: 40 * time.Second, To: 70 * time.Second})
	for i := range 14 {
		from := time.Duration(40+i*2) * time.Second
		r.Bands = append(r.Bands, Band{From: from, To: from + time.Second,
			Name: "link eu-west-1 to us-east-1 flaps"})
	}
	r.Bands = append(r.Bands, Band{From: 60 * time.Second, To: 95 * time.Second,
		Name: "300 ms more from ap-south-1 to everybody else"})
	r.Title, r.OK, r.Verdict = "Ten regions and a flapping link", true,
		"The ceiling held in every window; transfers stayed below 40 a minute."
	r.Expectations = []Expectation{{"The ceiling holds", "at most 12,000", "11,998", true}}
	return r
}

// manyRun has far more cells and slots than any chart has columns.
func manyRun() Run {
	r := heldRun()
	r.Title, r.Bands, r.Steps = "Three thousand windows of a second", nil, nil
	r.Length = 3000 * time.Second
	l := &r.Limits[0]
	l.Units, l.Window = 50, time.Second
	l.Cells, l.Slots, l.Shares = nil, nil, nil
	for i := range 3000 {
		n := int64(30 + i*7%17)
		if i == 1777 {
			n = 58
		}
		at := time.Duration(i) * time.Second
		parts := []int64{n / 2, n / 3, n - n/2 - n/3}
		l.Cells = append(l.Cells, Cell{From: at, Length: time.Second, Admitted: parts})
		l.Slots = append(l.Slots, Slot{At: at, Length: time.Second,
			Offered: []int64{n, n / 2, n / 4}, Admitted: parts})
		for region := range 3 {
			l.Shares = append(l.Shares, Share{At: at, Region: region,
				Share: int64(10 + (i*(region+1))%13), Entitlement: 17})
		}
	}
	l.Max, l.Excess = 58, 8
	r.OK, r.Verdict = false, "One window of 3,000 came to 58 on a limit of 50."
	return r
}

func bucketRun() Run {
	r := heldRun()
	r.Title = "A token bucket under a surge"
	r.Verdict = "The bucket never fell below zero."
	l := &r.Limits[0]
	l.Algorithm, l.Units, l.Window, l.Burst = "token_bucket", 6000, time.Minute, 400
	l.Cells, l.Max, l.Excess = nil, 0, 0
	for i := range 20 {
		level := min(int64(120+i*i*2%300), 400)
		l.Max = max(l.Max, level)
		l.Cells = append(l.Cells, Cell{From: time.Duration(2*i) * time.Second,
			Length: 2 * time.Second, Admitted: []int64{90, 70, 20}, Level: level})
	}
	second := r.Limits[0]
	second.Name, second.Key, second.Slots, second.Cells, second.Shares = "per-tenant", "tenant-7",
		nil, nil, nil
	r.Limits = append(r.Limits, second)
	return r
}

// monthRun has one window that is longer than the run on either side.
func monthRun() Run {
	r := heldRun()
	r.Title = "A monthly quota through a restart"
	l := &r.Limits[0]
	l.Units, l.Window, l.Pooled = 5_000_000, 31*24*time.Hour, 0
	l.Cells = []Cell{{From: -14 * 24 * time.Hour, Length: 31 * 24 * time.Hour,
		Admitted: []int64{2_100_000, 1_400_000, 310_000}, Unknown: 40}}
	l.Max, l.Excess = 3_810_040, 0
	return r
}

func hostileRun() Run {
	r := heldRun()
	h := hostile
	r.Title, r.About, r.Command, r.Verdict, r.Version = h, h, h, h, h
	r.Regions = []string{h, h + h, ""}
	r.Limits[0].Name, r.Limits[0].Key, r.Limits[0].Algorithm, r.Limits[0].Allowance = h, h, h, h
	r.Bands = []Band{{From: -time.Hour, To: 1 << 62, Name: h, About: h}, {From: 9, To: 3, Name: h}}
	r.Steps = []Step{{At: -1 << 63, Text: h, Outcome: h}}
	r.Expectations = []Expectation{{h, h, h, false}}
	r.Notes, r.Facts = []string{h}, []Fact{{h, h}}
	return r
}

// written is the page about a run.
func written(t testing.TB, r Run) string {
	t.Helper()
	var b bytes.Buffer
	suite.Must(t, Write(&b, r))
	return b.String()
}

func TestSamplesToLookAt(t *testing.T) {
	for title, r := range samples() {
		page := written(t, r)
		if *pages == "" {
			continue
		}
		suite.Must(t, os.WriteFile(filepath.Join(*pages, title+".html"), []byte(page),
			0o644))
	}
}
