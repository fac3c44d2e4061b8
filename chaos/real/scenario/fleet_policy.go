package scenario

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/chaos/real/process"
)

const (
	// applied is the time that nodes have to adopt a document. appliedEvery is the time between
	// checks.
	applied      = 15 * time.Second
	appliedEvery = 100 * time.Millisecond
)

// apply gives all nodes the next version of the document, and waits until those that no step ended
// or paused have adopted it.
func (f *Fleet) apply(ctx context.Context, s Step) (string, error) {
	f.mu.Lock()
	f.version++
	version := f.version
	err := f.fleet.WriteLimits(f.scenario.Document(version, s.Weights))
	f.mu.Unlock()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, applied)
	defer cancel()
	for _, n := range f.nodesOf(Step{}) {
		for f.answers(n) && !tookUp(ctx, n, version) {
			if !Sleep(ctx, appliedEvery) {
				return "", fmt.Errorf(
					"%s/%s did not take up version %d of the document: %w; its log ends with: %s",
					n.Region, n.Name, version, ctx.Err(), lastLine(n.Output()))
			}
		}
	}
	return fmt.Sprintf("version %d is in use", version), nil
}

// answers reports whether no step has ended or paused a node.
func (f *Fleet) answers(n *process.Node) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	at := f.nodes[n]
	return !at.down && !at.paused
}

// tookUp reports whether a node decides by a version of the document.
func tookUp(ctx context.Context, n *process.Node, version int64) bool {
	status, err := n.Status(ctx)
	return err == nil && strings.HasPrefix(status.Epoch, fmt.Sprintf("%d-", version))
}
