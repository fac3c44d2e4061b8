package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Error is why a call was not answered. Nothing of the call counts as admitted.
type Error struct {
	Server string // host:port
	Call   string // name of the script
	// Kind is the kind of refusal, one of Kinds, if the server answered with one. Empty: it did not
	// answer.
	Kind string
	// Ran says that the script may have run, so that what it charged or moved may stand. Such a
	// call is never sent again.
	Ran  bool
	Next string // what an operator can do
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("redis %s: %s: %v; %s", e.Server, e.Call, e.Err, e.Next)
}

func (e *Error) Unwrap() error { return e.Err }

// Unreached reports whether an error means that a server did not answer, in time or at all. A server
// that refuses a call has answered.
func Unreached(err error) bool {
	if Answered(err) {
		return false
	}
	_, refused := errors.AsType[redis.Error](err)
	return !refused
}

// resend reports whether, and where, a call that failed is sent again. It is sent again at most once.
type resend int

const (
	never      resend = iota
	loaded            // to the same server, after loading the script there
	elsewhere         // to the server that is the shard's master by then
	afterPause        // like elsewhere, after a pause
)

// Other is the kind of a refusal that is not in the table faults.
const Other = "other"

// Kinds returns the kinds of refusals in alphabetical order: those of the table faults, ClockApart
// and Other.
func Kinds() []string {
	return slices.Sorted(slices.Values(slices.AppendSeq([]string{ClockApart, Other},
		maps.Keys(faults))))
}

// fault is what an error means for the call and for the operator.
type fault struct {
	kind    string // see Error
	ran     bool   // the script may have run
	refresh bool   // the server may no longer be the shard's master
	resend  resend
	next    string
}

const (
	nextBusy    = "it will answer again by itself"
	nextURL     = "check that it runs and that redis.url is right"
	nextLogin   = "give redis.url the user and password that the Redis wants"
	nextRights  = "give quotad's user the rights of: "
	nextType    = "another program wrote a key that is quotad's: delete that key, and give quotad a Redis of its own"
	nextCluster = "look at CLUSTER INFO: every slot needs a master"
)

// faults are the errors that Redis answers with, by their first word. Unless ran is set, Redis
// refuses the call before it runs, or at the first write of a script, before anything is changed.
var faults = map[string]fault{
	"NOSCRIPT": {resend: loaded,
		next: "its scripts are flushed all the time: look for who calls SCRIPT FLUSH"},
	"MOVED":       {refresh: true, resend: elsewhere, next: nextCluster},
	"ASK":         {resend: afterPause, next: "a slot is being moved: " + nextBusy},
	"TRYAGAIN":    {resend: afterPause, next: "a slot is being moved: " + nextBusy},
	"CLUSTERDOWN": {refresh: true, next: nextCluster},
	"CROSSSLOT":   {next: "this is a mistake in quotad: report it"},
	"READONLY": {refresh: true,
		next: "it is a replica: a failover is under way, or redis.url names the wrong server"},
	"MASTERDOWN": {refresh: true,
		next: "it is a replica without a master: a failover is under way, or redis.url names the wrong server"},
	"LOADING": {refresh: true, next: "it reads its data after a start: " + nextBusy},
	"BUSY":    {next: "a script of another program has been running there for long: SCRIPT KILL ends it; give quotad a Redis of its own"},
	"OOM":     {next: "raise its maxmemory: under noeviction it takes no writes any more"},
	"MISCONF": {next: "it cannot save its data: free its disk, or set stop-writes-on-bgsave-error no"},
	"NOREPLICAS": {refresh: true,
		next: "fewer replicas follow it than min-replicas-to-write asks for"},
	"NOAUTH":    {next: nextLogin},
	"WRONGPASS": {next: nextLogin},
	"EXECABORT": {next: "this is a mistake in quotad: report it"},
	// A script may have charged other buckets before it reached the key of another type.
	"WRONGTYPE": {ran: true, next: nextType},
	// A missing right for one command of a script stops the script in the middle.
	"NOPERM": {ran: true, next: nextRights + MinimalACL},
}

// other is what an error means that is not in the table.
var other = fault{ran: true, next: "look at the Redis' own log, and that it is Valkey, or Redis 7.0 or later"}

// faultOf returns what an error means. After a network error it is unknown whether the script ran,
// unless no connection was made.
func faultOf(err error) fault {
	var answer redis.Error
	if errors.As(err, &answer) {
		word, _, _ := strings.Cut(answer.Error(), " ")
		switch { // inside a script, or after a long call, Redis uses other words
		case strings.Contains(answer.Error(), "unauthenticated"):
			word = "NOAUTH"
		case deniedInScript(answer), keyDenied(answer):
			word = "NOPERM"
		}
		f, known := faults[word]
		if !known {
			f, word = other, Other
		}
		f.kind = word
		return f
	}
	f := fault{ran: true, refresh: true, next: nextURL}
	var network *net.OpError
	switch {
	case errors.As(err, &network) && network.Op == "dial":
		f.ran = false
	case errors.Is(err, context.Canceled):
		f.refresh, f.next = false, "its caller has gone"
	case strings.Contains(err.Error(), "redis: invalid reply"),
		strings.Contains(err.Error(), "redis: can't parse"):
		f.next = "what answers there is no Redis, or wants TLS (rediss://): correct redis.url"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, io.EOF):
		f.next = nextURL + ", and says rediss:// if the Redis wants TLS, and only then"
	}
	return f
}

// deniedInScript reports whether a server refuses something to a script that its user has no right
// to: a command, or access to a key. Redis from 7.2 on and Valkey name the command, Redis 7.0 does
// not.
func deniedInScript(err error) bool {
	return strings.Contains(err.Error(), "ACL failure in script") ||
		strings.Contains(err.Error(), "can't run this command")
}

// keyDenied reports whether a server refuses access to a key, not a command, to a client or inside a
// script.
func keyDenied(err error) bool {
	return slices.ContainsFunc([]string{"permissions to access a key",
		"permissions to access one of the keys", "can't access at least one of the keys"},
		func(words string) bool { return strings.Contains(err.Error(), words) })
}

// Failed returns the Error of a call. If no server is known, nothing was sent, so the call did not
// run.
func Failed(server, call string, err error) *Error {
	f := faultOf(err)
	return &Error{Server: server, Call: call, Kind: f.kind, Ran: f.ran, Next: f.next, Err: err}
}

// execute sends a pipeline. Afterwards each command carries its own error. execute sets it itself
// in one case: if the connection is made but the login refused, go-redis gives the commands neither
// a reply nor an error.
func execute(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		return
	}
	for _, c := range cmds {
		c.SetErr(err)
	}
}
