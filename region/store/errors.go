package store

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Error is why a call was not answered. Nothing of it counts as admitted.
type Error struct {
	Server string // host:port
	Call   string // name of the script
	// Kind is that of a refusal, one of Kinds: what the server answered instead of what it was asked for. Empty: it did not
	// answer.
	Kind string
	// Ran says that the script may have run, so that what it charged or moved may stand. Such a call is never sent again.
	Ran  bool
	Next string // what an operator can do
	Err  error
}

func (e *Error) Error() string {
	return fmt.Sprintf("redis %s: %s: %v; %s", e.Server, e.Call, e.Err, e.Next)
}

func (e *Error) Unwrap() error { return e.Err }

// Unreached says whether an error is that a server did not answer, in time or at all; a server that refuses a call has
// answered.
func Unreached(err error) bool {
	var refusal redis.Error
	return err != nil && !errors.As(err, &refusal)
}

// resend says whether a call that an error answers is sent again, which happens once.
type resend int

const (
	never      resend = iota
	loaded            // to the same server, once it has been given the script
	elsewhere         // to the server that is the shard's master by then
	afterPause        // the same, a moment later
)

// Other is the kind of a refusal that is not in the table.
const Other = "other"

// Kinds returns the kinds of refusals: those of the table and Other, in the order of the alphabet.
func Kinds() []string {
	return slices.Sorted(func(yield func(string) bool) {
		for kind := range faults {
			if !yield(kind) {
				return
			}
		}
		yield(Other)
	})
}

// fault is what an error means.
type fault struct {
	kind    string // see Error
	ran     bool   // the script may have run
	refresh bool   // the server may not be the shard's master any more
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

// faults are the errors that Redis answers with, by their first word. Redis refuses these calls before they run, or at
// the first write of a script, before anything is changed.
var faults = map[string]fault{
	"NOSCRIPT":    {resend: loaded, next: "its scripts are flushed all the time: look for who calls SCRIPT FLUSH"},
	"MOVED":       {refresh: true, resend: elsewhere, next: nextCluster},
	"ASK":         {resend: afterPause, next: "a slot is being moved: " + nextBusy},
	"TRYAGAIN":    {resend: afterPause, next: "a slot is being moved: " + nextBusy},
	"CLUSTERDOWN": {refresh: true, next: nextCluster},
	"CROSSSLOT":   {next: "this is a mistake in quotad: report it"},
	"READONLY":    {refresh: true, next: "it is a replica: a failover is under way, or redis.url names the wrong server"},
	"MASTERDOWN":  {refresh: true, next: "it is a replica without a master: a failover is under way, or redis.url names the wrong server"},
	"LOADING":     {refresh: true, next: "it reads its data after a start: " + nextBusy},
	"BUSY":        {next: "another program's script runs there for long: SCRIPT KILL ends it; give quotad a Redis of its own"},
	"OOM":         {next: "raise its maxmemory: under noeviction it takes no writes any more"},
	"MISCONF":     {next: "it cannot save its data: free its disk, or set stop-writes-on-bgsave-error no"},
	"NOREPLICAS":  {refresh: true, next: "fewer replicas follow it than min-replicas-to-write asks for"},
	"NOAUTH":      {next: nextLogin},
	"WRONGPASS":   {next: nextLogin},
	"EXECABORT":   {next: "this is a mistake in quotad: report it"},
	// A script may have charged other buckets before it came to the key of another type.
	"WRONGTYPE": {ran: true, next: nextType},
	// A right that only one of a script's commands needs is missed in the middle of it.
	"NOPERM": {ran: true, next: nextRights + MinimalACL},
}

// other is what any other error of a server means.
var other = fault{ran: true, next: "look at the Redis' own log, and that it is Redis 7.0 or later"}

// faultOf says what an error means. A network error says nothing about whether the script ran, unless no connection
// came about.
func faultOf(err error) fault {
	var answer redis.Error
	if errors.As(err, &answer) {
		word, _, _ := strings.Cut(answer.Error(), " ")
		switch { // what is said otherwise of a long call, and inside a script
		case strings.Contains(answer.Error(), "unauthenticated"):
			word = "NOAUTH"
		case strings.Contains(answer.Error(), "can't run this command"), keyDenied(answer):
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
	}
	return f
}

// keyDenied says whether a server refuses a key, not a command: to a client, or inside a script.
func keyDenied(err error) bool {
	for _, words := range []string{"permissions to access a key", "permissions to access one of the keys",
		"can't access at least one of the keys"} {
		if strings.Contains(err.Error(), words) {
			return true
		}
	}
	return false
}

// Failed words an error of a call. What a server was not asked, because none is known, did not run.
func Failed(server, call string, err error) *Error {
	f := faultOf(err)
	return &Error{Server: server, Call: call, Kind: f.kind, Ran: f.ran, Next: f.next, Err: err}
}

// execute sends a pipeline. Each command then carries its own error: where a connection came about but its login was
// refused, go-redis gives the commands neither a reply nor an error.
func execute(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil || slices.ContainsFunc(cmds, func(c redis.Cmder) bool { return c.Err() != nil }) {
		return
	}
	for _, c := range cmds {
		c.SetErr(err)
	}
}
