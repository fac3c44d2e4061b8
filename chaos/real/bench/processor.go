package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// accounting reads how long processes and the machine used processors, from a folder like Linux's
// /proc. Where there is none, nothing is known.
type accounting struct{ dir string }

var procfs = accounting{"/proc"}

// tick is the unit of time in /proc/stat and /proc/PID/stat: USER_HZ, 100 a second on all systems
// that Go runs on.
const tick = 10 * time.Millisecond

// known reports whether there is an accounting on this system.
func (a accounting) known() bool {
	_, err := a.machine()
	return err == nil
}

// runs reports whether a process exists. Without an accounting it is not known, and runs says true.
func (a accounting) runs(pid int) bool {
	if pid < 1 {
		return false
	}
	_, err := os.Stat(filepath.Join(a.dir, strconv.Itoa(pid)))
	return err == nil || !a.known()
}

// name returns the name of a process, or an empty text.
func (a accounting) name(pid int) string {
	text, _ := os.ReadFile(filepath.Join(a.dir, strconv.Itoa(pid), "comm")) // it may have ended
	return strings.TrimSpace(string(text))
}

// threads has the processor time of each thread of a process, by thread ID.
type threads map[string]time.Duration

// since returns how long the process ran since an earlier reading. Threads that ended in between
// count as if they had not run.
func (t threads) since(before threads) (ran time.Duration) {
	for id, now := range t {
		ran += now - before[id]
	}
	return ran
}

// process reads the processor time of a process: in nanoseconds for each thread if the system
// counts that (schedstat), else in ticks for the whole process.
func (a accounting) process(pid int) (threads, error) {
	dir := filepath.Join(a.dir, strconv.Itoa(pid))
	tasks, err := os.ReadDir(filepath.Join(dir, "task"))
	if err != nil {
		return nil, err
	}
	all := threads{}
	for _, task := range tasks {
		text, err := os.ReadFile(filepath.Join(dir, "task", task.Name(), "schedstat"))
		if err != nil {
			continue // the thread has ended, or the system has no such file
		}
		ran, err := parseSchedstat(text)
		if err != nil {
			return nil, err
		}
		all[task.Name()] = ran
	}
	if len(all) > 0 {
		return all, nil
	}
	text, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return nil, err
	}
	ran, err := parseStat(text)
	return threads{"": ran}, err
}

// machine reads how long all processors of the machine were busy since its start, including time
// that its host gave to other machines.
func (a accounting) machine() (time.Duration, error) {
	text, err := os.ReadFile(filepath.Join(a.dir, "stat"))
	if err != nil {
		return 0, err
	}
	return parseMachine(text)
}

// parseSchedstat parses /proc/PID/task/TID/schedstat: nanoseconds on a processor, nanoseconds
// waited for one, and turns.
func parseSchedstat(text []byte) (time.Duration, error) {
	first, _, _ := strings.Cut(string(text), " ")
	ns, err := strconv.ParseInt(first, 10, 64)
	if err != nil || ns < 0 {
		return 0, fmt.Errorf("schedstat of a thread begins with %q and no number", first)
	}
	return time.Duration(ns), nil
}

// parseStat parses utime and stime of /proc/PID/stat. The second field is the name of the program
// in parentheses, and may have blanks and parentheses.
func parseStat(text []byte) (time.Duration, error) {
	const utime, stime = 14 - 3, 15 - 3 // the first field after the name is number 3
	end := bytes.LastIndexByte(text, ')')
	fields := strings.Fields(string(text[end+1:]))
	if end < 0 || len(fields) <= stime {
		return 0, fmt.Errorf("stat of a process has no times: %q", text)
	}
	return ticks(fields[utime], fields[stime])
}

// parseMachine parses the first line of /proc/stat.
func parseMachine(text []byte) (time.Duration, error) {
	line, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(line)
	if len(fields) < 9 || fields[0] != "cpu" {
		return 0, fmt.Errorf("stat of the machine begins with %q", line)
	}
	// After the word: user, nice, system, idle, iowait, irq, softirq, steal. Guests are in user.
	return ticks(fields[1], fields[2], fields[3], fields[6], fields[7], fields[8])
}

func ticks(fields ...string) (sum time.Duration, err error) {
	for _, f := range fields {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil || n < 0 {
			return 0, fmt.Errorf("%q is no number of clock ticks", f)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
