package audit

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"
)

// Act is a kind of act that is audited.
type Act string

// The acts. Each can exceed a limit or cut its users off, on purpose.
const (
	Reset     Act = "reset"
	Settle    Act = "settle"
	GiveBack  Act = "give_back" // negative hits
	Cut       Act = "cut"
	Heal      Act = "heal"
	Document  Act = "document"
	Fence     Act = "fence" // a document that fences a region
	Recover   Act = "recover"
	Bootstrap Act = "bootstrap"
	Roles     Act = "roles"
	Forget    Act = "forget_store_time" // what the store's time was
)

// The outcomes of an act.
const (
	Done    = "done"
	Refused = "refused" // the caller may not do it
	Failed  = "failed"
)

// Event is one act.
type Event struct {
	Act Act `json:"act"`
	// Who is the name of the caller in the roles file, or the name in its certificate. Nobody is
	// asked for a name on a port without roles; the caller is then "anonymous".
	Who  string `json:"who"`
	From string `json:"from"` // an address, or the file or setting that the node was given

	// What the act was about.
	Region  string   `json:"region,omitempty"` // of a cut, a fence or a first start
	Buckets []Bucket `json:"buckets,omitempty"`
	Detail  string   `json:"detail,omitempty"`

	Outcome string `json:"outcome"`
	Units   int64  `json:"units,omitempty"` // cleared or given back
	Why     string `json:"why,omitempty"`   // it was refused or failed
}

// Bucket names a bucket: a limit and its key.
type Bucket struct {
	Domain string            `json:"domain"`
	Limit  string            `json:"limit"`
	Key    map[string]string `json:"key,omitempty"`
}

const (
	// maxText bounds each text of a line in bytes, and maxKey the parts of a key, maxBuckets the
	// buckets that a line names. maxLine bounds the line: one that is longer is written without
	// its buckets.
	maxText    = 256
	maxKey     = 16
	maxBuckets = 16
	maxLine    = 8 << 10
)

// line is an event as it is written.
type line struct {
	Time string `json:"time"`
	Node string `json:"node"` // region/node
	Event
	Cut bool `json:"cut,omitempty"` // something was left out, to bound the line
}

// encode returns the line of an event, with its line end. It is never longer than maxLine.
func encode(at time.Time, node string, e Event) []byte {
	l := line{Time: at.UTC().Format(time.RFC3339Nano), Node: node}
	short := func(text string) string {
		if len(text) > maxText {
			l.Cut = true
			return strings.ToValidUTF8(text[:maxText], "")
		}
		return text
	}
	l.Event = Event{Act: e.Act, Who: short(e.Who), From: short(e.From), Region: short(e.Region),
		Detail: short(e.Detail), Outcome: e.Outcome, Units: e.Units, Why: short(e.Why)}
	for i, b := range e.Buckets {
		if i == maxBuckets {
			l.Cut = true
			break
		}
		named := Bucket{Domain: short(b.Domain), Limit: short(b.Limit), Key: map[string]string{}}
		for n, name := range slices.Sorted(maps.Keys(b.Key)) {
			if n == maxKey {
				l.Cut = true
				break
			}
			named.Key[short(name)] = short(b.Key[name])
		}
		l.Buckets = append(l.Buckets, named)
	}
	text, err := json.Marshal(l)
	if err != nil || len(text) >= maxLine { // it never fails to marshal
		l.Buckets, l.Cut = nil, true
		text, _ = json.Marshal(l)
	}
	return append(text, '\n')
}
