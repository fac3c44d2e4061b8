package process

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/quotad/quotad/chaos/judge/oracle"
	"github.com/quotad/quotad/chaos/real/load"
)

const (
	// maxUnderWay is the maximum number of requests of a flow that wait for an answer. Requests
	// that fall due beyond it are shed and counted.
	maxUnderWay = 256
	// askTimeout bounds one request.
	askTimeout = 2 * time.Second
)

// FlowConfig describes a load offered to a region.
type FlowConfig struct {
	Region string
	Rate   load.Rate
	Seed   uint64
	// Question is the request, sent again and again, to each node in turn. If its Cost is 0 it
	// costs 1.
	Question Question
	// Bucket is the judge's name of the bucket, and Limit the limit to judge it by.
	Bucket string
	Limit  oracle.Limit
	// Record gets every answer; for example Judge.Record. It is called concurrently.
	Record func(oracle.Answer)
}

// Flow offers load to a region until the context of its Run ends. At most 256 requests are under
// way, each for at most 2 s. Safe for concurrent use.
type Flow struct {
	*load.Generator
	nodes  []*Node
	config FlowConfig
	unsent atomic.Int64
}

// Flow returns a flow that Run starts.
func (f *Fleet) Flow(c FlowConfig) (*Flow, error) {
	r := f.Region(c.Region)
	if r == nil {
		return nil, fmt.Errorf("offer load to region %q: the fleet has no such region", c.Region)
	}
	c.Question.Cost = max(c.Question.Cost, 1)
	flow := &Flow{nodes: r.Nodes, config: c}
	var err error
	flow.Generator, err = load.NewGenerator(load.Config{Region: c.Region, Seed: c.Seed,
		Rate: c.Rate, Cost: c.Question.Cost,
		MaxInFlight: maxUnderWay, Do: flow.ask})
	return flow, err
}

// Unsent returns the number of requests that were never sent because no node accepted the
// connection. They are not answers, and are not judged.
func (f *Flow) Unsent() int64 { return f.unsent.Load() }

func (f *Flow) ask(ctx context.Context, r load.Request) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	n := f.nodes[r.Index%uint64(len(f.nodes))]
	if a, sent := n.Ask(ctx, f.config.Question, f.config.Bucket, f.config.Limit); sent {
		f.config.Record(a)
	} else {
		f.unsent.Add(1)
	}
}
