package process

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/quotad/quotad/chaos/lab/suite"
	"github.com/quotad/quotad/chaos/real/load"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

const (
	// victimsOf is set for a test binary that only runs the victims of an attack: the gRPC address
	// of the node.
	victimsOf = "QUOTAD_VICTIMS_OF"
	// victimsFor is how long they run.
	victimsFor = "QUOTAD_VICTIMS_FOR"

	victimRate = 200
	tightRate  = 50
	inTime     = 50 * time.Millisecond
)

// seen is what victims experienced.
type seen struct {
	Asked, InTime int
	P99           time.Duration
}

// String says how many requests the store decided in time.
func (s seen) String() string {
	return fmt.Sprintf("%d of %d (%.1f %%)", s.InTime, s.Asked,
		100*float64(s.InTime)/float64(max(s.Asked, 1)))
}

// victims is a separate process that asks a node at an even pace, as remote callers would. So the
// cost of the attack to its attacker does not affect what they see.
type victims struct {
	b      *testing.B
	cmd    *exec.Cmd
	lines  *bufio.Scanner
	errors bytes.Buffer
}

// startVictims starts victims, and returns once they send requests.
func startVictims(b *testing.B, node string, long time.Duration) *victims {
	b.Helper()
	self, err := os.Executable()
	suite.Must(b, err)
	v := &victims{b: b, cmd: exec.CommandContext(b.Context(), self)}
	v.cmd.Env = append(os.Environ(), victimsOf+"="+node, victimsFor+"="+long.String())
	v.cmd.Stderr = &v.errors
	out, err := v.cmd.StdoutPipe()
	suite.Must(b, err)
	suite.Must(b, v.cmd.Start())
	v.lines = bufio.NewScanner(out)
	v.line()
	return v
}

// line returns the next line of their output.
func (v *victims) line() []byte {
	v.b.Helper()
	if !v.lines.Scan() {
		_ = v.cmd.Wait()
		v.b.Fatalf("the victims ended: %s", v.errors.Bytes())
	}
	return v.lines.Bytes()
}

// wait waits for their result and returns it.
func (v *victims) wait() (all seen) {
	v.b.Helper()
	suite.Must(v.b, json.Unmarshal(v.line(), &all))
	suite.Must(v.b, v.cmd.Wait())
	return all
}

// beVictims sends requests to a node for a time. It prints a line when it begins, and its result at
// the end.
func beVictims(node, long string) error {
	lasts, err := time.ParseDuration(long)
	if err != nil {
		return err
	}
	conn, err := grpc.NewClient("passthrough:///"+node,
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	v := &victim{client: quotadv1.NewQuotaServiceClient(conn)}
	if _, err := healthv1.NewHealthClient(conn).Check(context.Background(),
		&healthv1.HealthCheckRequest{}); err != nil {
		return err
	}
	fmt.Println("asking")
	ctx, cancel := context.WithTimeout(context.Background(), lasts)
	defer cancel()
	var all sync.WaitGroup
	var failed [2]error
	all.Go(func() { failed[0] = v.asks(ctx, "api", victimRate) })
	all.Go(func() { failed[1] = v.asks(ctx, "tight", tightRate) })
	all.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(v.seen())
}

// victim sends requests and records their outcomes.
type victim struct {
	client quotadv1.QuotaServiceClient

	mu     sync.Mutex
	took   []time.Duration
	inTime int
}

// asks sends so many requests a second: of limit api for one key after the other, and of limit
// tight for one key, for which nobody waits.
func (v *victim) asks(ctx context.Context, domain string, rate int64) error {
	g, err := load.NewGenerator(load.Config{Region: "us", Rate: load.Rate(rate),
		Do: func(ctx context.Context, r load.Request) {
			q := &quotadv1.CheckRequest{Domain: domain,
				Descriptors: map[string]string{"account": "v"}}
			if domain == "api" {
				q.Descriptors["account"] = strconv.Itoa(int(r.Index % 50))
			}
			begun := time.Now()
			got, err := v.client.Check(ctx, q)
			if domain == "api" {
				v.note(time.Since(begun), err == nil && got.Decision.AtUs != 0)
			}
		}})
	if err != nil {
		return err
	}
	return g.Run(ctx)
}

// note records how long a request took, and whether the store decided it.
func (v *victim) note(took time.Duration, decided bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.took = append(v.took, took)
	if decided && took <= inTime {
		v.inTime++
	}
}

func (v *victim) seen() seen {
	v.mu.Lock()
	defer v.mu.Unlock()
	s := seen{Asked: len(v.took), InTime: v.inTime}
	if s.Asked > 0 {
		slices.Sort(v.took)
		s.P99 = v.took[s.Asked*99/100]
	}
	return s
}
