package serving

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quotad/quotad/cmd/quotad/exit"
	"github.com/quotad/quotad/cmd/quotad/serve/nodeconfig"
	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/trade/rights"
)

// failpointVariable is an environment variable that names a point of a transfer at which this
// process kills itself. It may add the number of the pass that does: after-fsync or after-fsync:3.
// It is for rehearsals of crashes, and needs chaos: true.
const failpointVariable = "QUOTAD_FAILPOINT"

// failpoint reads the variable. It returns nil if the variable is not set, or if the node rehearses
// no faults.
func failpoint(c *nodeconfig.Config) (func(rights.Point), error) {
	text, set := nodeconfig.Environment(failpointVariable)
	if !set || !c.Chaos {
		return nil, nil
	}
	name, number, counted := strings.Cut(text, ":")
	times, err := int64(1), error(nil)
	if counted {
		times, err = strconv.ParseInt(number, 10, 64)
	}
	if !slices.Contains(rights.Points, rights.Point(name)) || err != nil || times < 1 {
		return nil, exit.Usage(fmt.Errorf(
			"%s: %.70q is no failpoint; unset it, or write one of %s, and :N for the Nth time",
			failpointVariable, text, show.Listed(rights.Points)))
	}
	var passed atomic.Int64
	return func(p rights.Point) {
		if p != rights.Point(name) || passed.Add(1) != times {
			return
		}
		if p == rights.AfterReply { // the reply must have left the process
			time.AfterFunc(replyLeaves, die)
			return
		}
		die()
		select {} // nothing may happen after this point
	}, nil
}

// failpointWarning says that the variable is set and ignored. A node that refused to start instead
// could still be stopped by a variable.
func failpointWarning(c *nodeconfig.Config) []string {
	if _, set := nodeconfig.Environment(failpointVariable); !set || c.Chaos {
		return nil
	}
	return []string{failpointVariable + " is ignored, because this node does not say chaos: true; unset it"}
}

// replyLeaves is the time that a reply may take to leave the process.
const replyLeaves = 2 * time.Millisecond

// die ends the process as kill -9 does.
func die() { _ = syscall.Kill(os.Getpid(), syscall.SIGKILL) }
