package process

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// scraped are a node's metrics by name and labels, as written on the page.
type scraped map[string]float64

func scrape(t testing.TB, n *Node) scraped {
	t.Helper()
	answer, err := http.Get("http://" + n.Admin + "/metrics")
	suite.Must(t, err)
	defer answer.Body.Close()
	all := scraped{}
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, found := strings.Cut(lines.Text(), " ")
		if v, err := strconv.ParseFloat(value, 64); found && err == nil {
			all[name] = v
		}
	}
	return all
}

// since prints by how much counters with some names have grown, without those that have not.
func (s scraped) since(before scraped, prefixes ...string) string {
	var grown []string
	for name, v := range s {
		was := before[name]
		for _, p := range prefixes {
			if strings.HasPrefix(name, p) && v != was {
				name = strings.TrimPrefix(name, "quotad_")
				grown = append(grown, fmt.Sprintf("%s %.0f", name, v-was))
			}
		}
	}
	slices.Sort(grown)
	if len(grown) == 0 {
		return "none"
	}
	return strings.Join(grown, ", ")
}

// processorTime returns how long the threads of a process ran, and how long they waited for a
// processor; 0 if there is no /proc.
func processorTime(p *Process) (ran, waited time.Duration) {
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, path := range threads {
		text, _ := os.ReadFile(path) // it may have ended
		var r, w time.Duration
		_, _ = fmt.Sscan(string(text), &r, &w)
		ran, waited = ran+r, waited+w
	}
	return ran, waited
}

// memoryOf returns a process's resident memory in bytes: all of it (VmRSS), its maximum (VmHWM), or
// that of mapped files (RssFile); 0 if there is no /proc.
func memoryOf(p *Process, what string) int64 {
	p.mu.Lock()
	pid := p.cmd.Process.Pid
	p.mu.Unlock()
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(status) {
		if f := strings.Fields(string(line)); len(f) == 3 && f[0] == what+":" {
			kb, _ := strconv.ParseInt(f[1], 10, 64)
			return kb << 10
		}
	}
	return 0
}

// journalSize returns the size of the files in a node's data folder in bytes.
func journalSize(t testing.TB, n *Node) (size int64) {
	t.Helper()
	all, err := os.ReadDir(filepath.Join(n.dir, "data"))
	suite.Must(t, err)
	for _, one := range all {
		info, err := one.Info()
		suite.Must(t, err)
		size += info.Size()
	}
	return size
}

func client(b *testing.B, n *Node) quotadv1.QuotaServiceClient {
	c, err := grpc.NewClient("passthrough:///"+n.GRPC,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	suite.Must(b, err)
	b.Cleanup(func() { _ = c.Close() })
	return quotadv1.NewQuotaServiceClient(c)
}

// paced counts the outcomes of single checks at an even pace.
type paced struct {
	// offered fell due. sent is the part of it that the generator sent.
	offered, sent int64

	mu                        sync.Mutex
	took                      []time.Duration
	decided, admitted, failed int64 // by the store; by it or without it; no answer
	reasons                   map[quotadv1.Reason]int64
}

func newPaced() *paced { return &paced{reasons: map[quotadv1.Reason]int64{}} }

// add adds the counts of another paced.
func (p *paced) add(o *paced) {
	p.offered, p.sent = p.offered+o.offered, p.sent+o.sent
	p.decided, p.admitted, p.failed = p.decided+o.decided, p.admitted+o.admitted, p.failed+o.failed
	p.took = append(p.took, o.took...)
	for r, n := range o.reasons {
		p.reasons[r] += n
	}
}

// part returns the time within which so many in a thousand were answered.
func (p *paced) part(thousandths int) time.Duration {
	if len(p.took) == 0 {
		return 0
	}
	slices.Sort(p.took)
	return p.took[len(p.took)*thousandths/1000].Round(time.Microsecond)
}

func (p *paced) String() string {
	return fmt.Sprintf("offered %d, sent %d, decided by the store %d; p50 %v p90 %v p99 %v p99.9 %v",
		p.offered, p.sent, p.decided, p.part(500), p.part(900), p.part(990), p.part(999))
}

// checks makes so many checks a second until ctx ends. request returns the request of a call by its
// number.
func checks(ctx context.Context, b *testing.B, to quotadv1.QuotaServiceClient, rate load.Rate,
	request func(i uint64) *quotadv1.CheckRequest) *paced {
	p := newPaced()
	g, err := load.NewGenerator(load.Config{Rate: rate, Do: func(ctx context.Context,
		r load.Request) {
		q := request(r.Index)
		begun := time.Now()
		got, err := to.Check(ctx, q)
		p.note(got.GetDecision(), err, time.Since(begun))
	}})
	if err == nil {
		err = g.Run(ctx)
	}
	suite.Must(b, err)
	s := g.Stats()
	p.offered, p.sent = s.Due, s.Sent
	return p
}

func (p *paced) note(d *quotadv1.Decision, err error, took time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.took = append(p.took, took)
	if err != nil {
		p.failed++
		return
	}
	p.reasons[d.Reason]++
	if d.Allowed {
		p.admitted++
	}
	if d.AtUs != 0 {
		p.decided++
	}
}

// table prints what it is given in columns, the first wider than the others.
func table(columns ...any) {
	fmt.Printf("%-18v", columns[0])
	for _, c := range columns[1:] {
		fmt.Printf(" %11v", c)
	}
	fmt.Println()
}
