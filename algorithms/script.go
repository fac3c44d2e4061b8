package algorithms

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
	"strings"
)

//go:embed token.lua
var tokenLua string

//go:embed ledger.lua
var ledgerLua string

//go:embed rows.lua
var rowsLua string

//go:embed bucket.lua
var bucketLua string

//go:embed lean.lua
var leanLua string

//go:embed fixed_window.lua
var fixedWindowLua string

//go:embed sliding_window_counter.lua
var counterLua string

//go:embed sliding_window_log.lua
var logLua string

//go:embed rate.lua
var rateLua string

//go:embed token_bucket.lua
var tokensLua string

//go:embed leaky_bucket.lua
var queueLua string

//go:embed decide.lua
var decideLua string

//go:embed lend.lua
var lendLua string

//go:embed assign.lua
var assignLua string

//go:embed credit.lua
var creditLua string

//go:embed inspect.lua
var inspectLua string

//go:embed settle.lua
var settleLua string

//go:embed reset.lua
var resetLua string

//go:embed open.lua
var openLua string

//go:embed adopt.lua
var adoptLua string

//go:embed nodes.lua
var nodesLua string

//go:embed seen.lua
var seenLua string

//go:embed note.lua
var noteLua string

//go:embed beat.lua
var beatLua string

//go:embed recall.lua
var recallLua string

//go:embed restore.lua
var restoreLua string

//go:embed book.lua
var bookLua string

// Layout is the number of the layout in which the scripts write: the fields of buckets and of the
// token, and what is remembered of requests and receipts. Each store's token names it. A store of
// another layout is opened as after a loss, because nobody can read what it holds. Who changes what
// is written, so that scripts of before would read it wrong or those of now what was there before,
// raises the number, and has package store put other marks into the keys: no script may meet a key
// of another layout. Such keys expire.
const Layout = 1

// Script is a Lua script as Redis is given it.
type Script struct {
	Name   string // for errors and metrics
	Source string
	SHA    string // hex SHA-1 of Source, the argument of EVALSHA
}

// The scripts. KEYS[1] of each is the store's token.
var (
	DecideScript  = newScript("decide", tokenLua, leanLua, ledgerLua, fragments, decideLua)
	LendScript    = guarded("lend", lendLua)
	AssignScript  = guarded("assign", assignLua)
	CreditScript  = guarded("credit", creditLua)
	InspectScript = guarded("inspect", inspectLua)
	SettleScript  = guarded("settle", settleLua)
	ResetScript   = guarded("reset", resetLua)
	RecallScript  = guarded("recall", recallLua)
	RestoreScript = guarded("restore", restoreLua)
	BookScript    = guarded("book", bookLua)
	OpenScript    = newScript("open", openLua)
	AdoptScript   = newScript("adopt", adoptLua)
	NodesScript   = newScript("nodes", seenLua, nodesLua)
	NoteScript    = newScript("note", noteLua)
	BeatScript    = newScript("beat", tokenLua, seenLua, beatLua)
)

// guarded puts a body behind the prelude and the fragments of all algorithms.
func guarded(name, body string) Script {
	return newScript(name, tokenLua, ledgerLua, fragments, body)
}

// fragments is what works on a bucket: its rows, and all algorithms.
var fragments = strings.Join([]string{rowsLua, bucketLua, fixedWindowLua, counterLua, logLua,
	rateLua, tokensLua, queueLua}, "\n")

func newScript(name string, parts ...string) Script {
	source := strings.Join(parts, "\n")
	sum := sha1.Sum([]byte(source))
	return Script{Name: name, Source: source, SHA: hex.EncodeToString(sum[:])}
}

// Script returns the script that answers a call.
func (Items) Script() Script { return DecideScript }

// Script returns the script that answers a call.
func (Lend) Script() Script { return LendScript }

// Script returns the script that answers a call.
func (Assign) Script() Script { return AssignScript }

// Script returns the script that answers a call.
func (Credit) Script() Script { return CreditScript }

// Script returns the script that answers a call.
func (Inspect) Script() Script { return InspectScript }

// Script returns the script that answers a call.
func (Settle) Script() Script { return SettleScript }

// Script returns the script that answers a call.
func (Reset) Script() Script { return ResetScript }

// Script returns the script that answers a call.
func (Recall) Script() Script { return RecallScript }

// Script returns the script that answers a call.
func (Restore) Script() Script { return RestoreScript }

// Script returns the script that answers a call.
func (Book) Script() Script { return BookScript }

// Script returns the script that answers a call.
func (Open) Script() Script { return OpenScript }

// Script returns the script that answers a call.
func (Adopt) Script() Script { return AdoptScript }

// Script returns the script that answers a call.
func (Nodes) Script() Script { return NodesScript }

// Script returns the script that answers a call.
func (Note) Script() Script { return NoteScript }

// Script returns the script that answers a call.
func (Beat) Script() Script { return BeatScript }

// Keys returns no KEYS after the token's.
func (Open) Keys() []string { return nil }

// Keys returns no KEYS after the token's.
func (Adopt) Keys() []string { return nil }

// Keys returns no KEYS after the token's.
func (Nodes) Keys() []string { return nil }

// Keys returns no KEYS after the token's.
func (Note) Keys() []string { return nil }

// Keys returns no KEYS after the token's.
func (Beat) Keys() []string { return nil }
