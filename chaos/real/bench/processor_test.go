package bench

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// A process as Linux shows it. The name of the program is chosen to mislead.
const (
	someStat = "4711 (redis) server) S 1 4711 4711 0 -1 4194560 2212 0 13 0 1234 567 8 9 20 0 6 " +
		"0 1540212 81342464 3011 18446744073709551615 1 1 0 0 0 0 0 4097 17642 0 0 0 17 1 0 0 0 0\n"
	someSchedstat = "1207928 11566742 2\n"
	someMachine   = "cpu  1714241 142883 138767 1043101 1323 7 11524 33269 5 0\n" +
		"cpu0 855436 71435 69198 523722 785 0 5788 16130 0 0\nintr 30291016 0 0\n"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name  string
		parse func([]byte) (time.Duration, error)
		text  string
		want  time.Duration
		fails bool
	}{
		{"schedstat", parseSchedstat, someSchedstat, 1207928, false},
		{"schedstat that is empty", parseSchedstat, "", 0, true},
		{"schedstat below 0", parseSchedstat, "-1 0 0", 0, true},
		{"stat", parseStat, someStat, (1234 + 567) * tick, false},
		{"stat without a name", parseStat, "4711 S 1", 0, true},
		{"stat that is short", parseStat, "4711 (quotad) S 1 2 3 4 5 6 7 8 9 10 11", 0, true},
		{"stat without numbers", parseStat, "1 (q) S 1 2 3 4 5 6 7 8 9 10 a b 0", 0, true},
		{"machine", parseMachine, someMachine,
			(1714241 + 142883 + 138767 + 7 + 11524 + 33269) * tick, false},
		{"machine that is short", parseMachine, "cpu  1 2 3 4\n", 0, true},
		{"another line", parseMachine, "cpu0 1 2 3 4 5 6 7 8 9 10\n", 0, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := c.parse([]byte(c.text))
			if (err != nil) != c.fails || !c.fails && got != c.want {
				t.Errorf("got %v, %v; want %v", got, err, c.want)
			}
		})
	}
}

// write writes files below a new folder, by path.
func write(t *testing.T, files map[string]string) accounting {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		path = filepath.Join(dir, path)
		suite.Must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		suite.Must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	return accounting{dir}
}

// TestAccounting: a process is read by its threads where the system counts them, else as a whole.
func TestAccounting(t *testing.T) {
	a := write(t, map[string]string{"stat": someMachine,
		"7/task/7/schedstat": "1000 5 1\n", "7/task/9/schedstat": "300 0 1\n",
		"7/stat": someStat, "7/comm": "redis-server\n",
		"8/task/8/stat": "", "8/stat": someStat, "8/comm": "quotad\n"})
	fine, err := a.process(7)
	if err != nil || fine.since(nil) != 1300 {
		t.Errorf("by threads: %v, %v", fine, err)
	}
	coarse, err := a.process(8)
	if err != nil || coarse.since(nil) != 18010*time.Millisecond {
		t.Errorf("as a whole: %v, %v", coarse, err)
	}
	if _, err := a.process(9); err == nil || a.runs(9) || !a.runs(8) || a.runs(0) || !a.known() {
		t.Errorf("no process 9: %v", err)
	}
	if got := a.name(7); got != "redis-server" {
		t.Errorf("process 7 is named %q", got)
	}
	none := accounting{t.TempDir()}
	if none.known() || !none.runs(7) || none.runs(-1) {
		t.Error("without an accounting it is not known which processes there are")
	}
}

// TestThreads: a thread that ended takes nothing away, and one that began counts in full.
func TestThreads(t *testing.T) {
	before := threads{"1": 100, "2": 5000}
	after := threads{"1": 130, "3": 20}
	if got := after.since(before); got != 50 {
		t.Errorf("ran for %d, want 50", got)
	}
}

// TestThisProcess: a processor that is kept busy is seen.
func TestThisProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("there is no /proc")
	}
	read := func() time.Duration {
		ran, err := procfs.process(os.Getpid())
		suite.Must(t, err)
		return ran.since(nil)
	}
	before := read()
	for begun, n := time.Now(), 0; read()-before < 20*time.Millisecond; n++ {
		if time.Since(begun) > 30*time.Second {
			t.Fatal("30 s of work are not seen")
		}
	}
}
