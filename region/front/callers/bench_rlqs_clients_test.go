package callers

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	rlqsv3 "github.com/envoyproxy/go-control-plane/envoy/service/rate_limit_quota/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/chaos/lab/suite"
)

// rlqsClients names the variable that says to which address TestRLQSClients reports, and on how
// many connections.
const rlqsClients = "QUOTAD_TEST_RLQS_CLIENTS"

// clients are the Envoys of BenchmarkRLQS: a process that reads commands and answers each with a
// line. open: open all streams and report nothing. report: report until the end. count: only
// answer. An answer has how many assignments came so far, in how many messages.
type clients struct {
	b       *testing.B
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

func startClients(b *testing.B, address string, connections int) *clients {
	b.Helper()
	self, err := os.Executable()
	suite.Must(b, err)
	c := &clients{b: b, process: exec.Command(self, "-test.run=^TestRLQSClients$")}
	c.process.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d", rlqsClients, address, connections))
	c.process.Stderr = os.Stderr
	out, err := c.process.StdoutPipe()
	suite.Must(b, err)
	c.out = bufio.NewReader(out)
	c.in, err = c.process.StdinPipe()
	suite.Must(b, err)
	suite.Must(b, c.process.Start())
	return c
}

// ask gives a command, and waits until it is done.
func (c *clients) ask(command string) (assigned, messages int64) {
	c.b.Helper()
	fmt.Fprintln(c.in, command)
	if _, err := fmt.Fscanln(c.out, &assigned, &messages); err != nil {
		c.b.Fatalf("%s: the clients ended: %v", command, err)
	}
	return assigned, messages
}

func (c *clients) end() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	if err := c.process.Wait(); err != nil {
		c.b.Error(err)
	}
}

// TestRLQSClients is the process of the clients of BenchmarkRLQS. They decode nothing.
func TestRLQSClients(t *testing.T) {
	var address string
	var connections int
	if n, _ := fmt.Sscan(os.Getenv(rlqsClients), &address, &connections); n != 2 {
		t.Skip("no benchmark needs it")
	}
	f := &fleet{T: t, report: make(chan struct{})}
	var ctx context.Context
	ctx, f.end = context.WithCancel(t.Context())
	defer f.work.Wait()
	defer f.end()
	for command := bufio.NewScanner(os.Stdin); command.Scan(); {
		switch command.Text() {
		case "open":
			f.open(ctx, address, connections)
		case "report":
			f.begun.Add(rlqsStreams)
			close(f.report)
			f.begun.Wait()
		}
		fmt.Println(f.assigned.Load(), f.messages.Load())
	}
}

// fleet is all Envoys.
type fleet struct {
	*testing.T
	end                func()
	work, begun        sync.WaitGroup
	report             chan struct{} // closed: report
	assigned, messages atomic.Int64
}

// open opens all streams with reports of no bucket id.
func (f *fleet) open(ctx context.Context, address string, connections int) {
	var all []*grpc.ClientConn
	for range connections {
		conn, err := grpc.NewClient("passthrough:///"+address,
			grpc.WithTransportCredentials(insecure.NewCredentials()))
		suite.Must(f, err)
		f.Cleanup(func() { _ = conn.Close() })
		all = append(all, conn)
	}
	service := &rlqsv3.RateLimitQuotaService_ServiceDesc
	for i := range rlqsStreams {
		stream, err := all[i%connections].NewStream(ctx, &service.Streams[0],
			rlqsv3.RateLimitQuotaService_StreamRateLimitQuotas_FullMethodName,
			grpc.ForceCodecV2(frameCodec{}))
		suite.Must(f, err)
		f.send(ctx, stream, &rlqsv3.RateLimitQuotaUsageReports{Domain: "api"})
		f.work.Go(func() { f.reports(ctx, stream, i) })
		f.work.Go(func() { f.receives(stream) })
	}
	time.Sleep(time.Second) // until they are taken in
}

func (f *fleet) send(ctx context.Context, stream grpc.ClientStream, m proto.Message) {
	raw, err := proto.Marshal(m)
	if err != nil {
		f.Error(err)
	}
	if err := stream.SendMsg(frame(raw)); err != nil && ctx.Err() == nil {
		f.Errorf("a stream broke: %v", stream.RecvMsg(new(frame)))
		f.end()
	}
}

// reports has the stream of a number report.
func (f *fleet) reports(ctx context.Context, stream grpc.ClientStream, number int) {
	select {
	case <-ctx.Done():
		return
	case <-f.report:
	}
	m := reportOf(number)
	wait := time.NewTimer(rlqsEvery * time.Duration(number) / rlqsStreams)
	defer wait.Stop()
	for first := true; ; first = false {
		select {
		case <-ctx.Done():
			return
		case <-wait.C:
		}
		wait.Reset(rlqsEvery)
		f.send(ctx, stream, m)
		if first {
			f.begun.Done()
		}
	}
}

// receives counts what a stream is told.
func (f *fleet) receives(stream grpc.ClientStream) {
	for {
		var m frame
		if stream.RecvMsg(&m) != nil {
			return
		}
		f.assigned.Add(actionsIn(m))
		f.messages.Add(1)
	}
}

// frame is a message as its bytes.
type frame []byte

// frameCodec passes on bytes as they are.
type frameCodec struct{}

func (frameCodec) Name() string { return "proto" }

func (frameCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.(frame))}, nil
}

func (frameCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*frame) = data.Materialize()
	return nil
}

// actionsIn returns how many bucket actions a message has.
func actionsIn(m frame) (actions int64) {
	for len(m) > 0 {
		_, _, n := protowire.ConsumeField(m)
		if n < 0 {
			return actions
		}
		m = m[n:]
		actions++
	}
	return actions
}

// reportOf returns what a stream reports: a demand of its own for each bucket id.
func reportOf(stream int) *rlqsv3.RateLimitQuotaUsageReports {
	m := &rlqsv3.RateLimitQuotaUsageReports{Domain: "api"}
	for i := range rlqsBuckets {
		m.BucketQuotaUsages = append(m.BucketQuotaUsages,
			&rlqsv3.RateLimitQuotaUsageReports_BucketQuotaUsage{
				BucketId:    &rlqsv3.BucketId{Bucket: map[string]string{"account": fmt.Sprint(i)}},
				TimeElapsed: &durationpb.Duration{Seconds: 5},

				NumRequestsAllowed: uint64(5 * (20 + (stream+i)%100))})
	}
	return m
}
