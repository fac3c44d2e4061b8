package operate

import (
	"fmt"
	"strings"
	"time"

	"github.com/quotad/quotad/cmd/quotad/show"
	"github.com/quotad/quotad/region/front/api"
	"github.com/quotad/quotad/region/memory/store"
)

// nodeStatus is the API's answer, to be printed.
type nodeStatus api.Status

// storePlace says which store it is.
func storePlace(s api.StoreStatus, generation uint64) string {
	text := fmt.Sprintf("%s %s, generation %d", show.Name(s.Kind), show.Name(s.Address), generation)
	if s.ID != "" {
		text += ", id " + show.Name(s.ID)
	}
	if len(s.Data) > 0 {
		text += ", data " + strings.Join(show.Names(s.Data), " ")
	}
	return text
}

// storeState says in words how the store is.
func storeState(s api.StoreStatus) string {
	var parts []string
	if s.Stopped != "" {
		parts = append(parts, "NOT USED: "+show.Detail(s.Stopped))
	}
	for _, r := range s.Rivals {
		parts = append(parts, rivalWords(r))
	}
	if len(s.OutOfReach) > 0 {
		parts = append(parts, "OUT OF REACH: "+strings.Join(show.Names(s.OutOfReach), " ")+
			", decided as on_store_failure says")
	}
	for _, r := range s.Refusing {
		parts = append(parts, fmt.Sprintf("REFUSES CALLS: %s (%d so far; %s)", show.Name(r.Kind),
			r.Calls, show.Name(r.Advice)))
	}
	if len(parts) == 0 {
		parts = append(parts, "in reach")
	}
	if s.LastLoss.IsZero() {
		parts = append(parts, "no loss known")
	} else {
		parts = append(parts, "last lost data at "+s.LastLoss.Format(time.RFC3339))
	}
	switch s.MaxmemoryPolicy {
	case "":
		parts = append(parts, "maxmemory-policy not known")
	case store.NoEviction:
		parts = append(parts, store.NoEviction)
	default:
		parts = append(parts, "MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is "+
			show.Name(s.MaxmemoryPolicy))
	}
	if s.ClockApart != nil {
		parts = append(parts, "clock "+ahead(*s.ClockApart))
	}
	return strings.Join(parts, ", ")
}

// rivalWords says which other store a node of the region has.
func rivalWords(r api.StoreRival) string {
	does := "decides with it"
	switch {
	case r.Hearsay:
		does += " as gossip says, and does not answer at its peer port"
	case r.Stopped:
		does = "has stopped using it"
	}
	return fmt.Sprintf("A SECOND STORE: %s has store %s and %s", show.Name(r.Node), show.Name(r.ID),
		does)
}

// matesWords names the other nodes of the region, and says if they are not as many as configured.
func matesWords(mates []string, nodes int) string {
	text := show.OrNone(strings.Join(show.Names(mates), ", "))
	if nodes > 0 && len(mates)+1 != nodes {
		text += fmt.Sprintf("; nodes says %d, gossip sees %d", nodes, len(mates)+1)
	}
	return text
}

// documentsWords says what is noteworthy of the limits documents; quotad limits status has the
// rest.
func documentsWords(d api.DocumentsStatus) (text string) {
	if d.Held > 0 {
		text = "; an older document still binds " + show.Counted(d.Held, "limit")
	}
	for _, r := range d.Regions {
		if r.Waited > 0 {
			text += fmt.Sprintf(", WAITS FOR %s, for %s", show.Name(r.Region),
				show.Span(time.Duration(r.Waited).Round(100*time.Millisecond)))
		}
		if r.Refused != "" {
			text += "; NOT TAKEN: " + show.Detail(r.Refused)
		}
	}
	if d.FileRefused != "" {
		text += "; ITS FILE IS PASSED OVER: " + show.Detail(d.FileRefused)
	}
	return text
}

// rolesWords reports whether callers are asked who they are.
func rolesWords(r *api.RolesStatus) string {
	if r == nil {
		return "none"
	}
	text := show.Counted(r.Callers, "caller")
	if r.Refused != "" {
		text += "; THE FILE AS IT IS NOW IS NOT IN FORCE: " + show.Detail(r.Refused)
	}
	return text
}

func recoveryWords(r api.RecoveryStatus) string {
	var closed string
	for _, c := range r.Closed {
		closed += fmt.Sprintf("; KEYS OF %s ARE ANSWERED recovering UNTIL %s", show.Name(c.Limit),
			c.Until.Format(time.RFC3339))
	}
	for _, l := range r.Limits {
		closed += fmt.Sprintf("; %s of %s NOT WHOLE SINCE %s", show.Counted(l.Buckets, "bucket"), show.Name(l.Limit),
			l.Since.Format(time.RFC3339))
	}
	if r.Waiting+r.Recovered+r.PartlyKnown == 0 {
		return "nothing to restore" + closed
	}
	return fmt.Sprintf("%s waiting, %d restored, %d of them but for regions that did not tell",
		show.Counted(int(r.Waiting), "bucket"), r.Recovered, r.PartlyKnown) + closed
}

func journalWords(j api.JournalStatus) string {
	whole := "whole"
	switch {
	case j.Failed:
		whole = "FAILED: nothing is lent until the node starts anew"
	case !j.Whole:
		whole = "not known to be whole"
	case !j.WholeSince.IsZero():
		whole = "whole since " + j.WholeSince.Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, opened %s, commit %d, %s, %s", whole, show.Counted(int(j.Incarnation),
		"time"), j.Sequence,
		show.Counted(int(j.Rows), "row"), show.Counted(int(j.Checkpoints), "checkpoint"))
}

func localWords(l api.LocalStatus) string {
	if l.Units == 0 {
		return "nothing admitted without the store"
	}
	return fmt.Sprintf("%s of %s admitted without the store, %d not charged there yet",
		show.Counted(int(l.Units), "unit"), show.Counted(l.Buckets, "bucket"), l.Unbooked)
}

// peerRow is a row of a table about another region, with a word for one that does not answer.
func peerRow(p api.PeerStatus, degraded string) string {
	state, clock := "ok", "-"
	if p.Degraded {
		state = degraded
	}
	if p.ClockApart != nil {
		clock = ahead(*p.ClockApart)
	}
	if !p.Heard {
		return show.Name(p.Region) + "\t" + state + "\tnever\t-\t" + clock
	}
	return fmt.Sprintf("%s\t%s\t%s ago\t%s\t%s", show.Name(p.Region), state, p.Age.Rounded(),
		p.RoundTrip.Rounded(), clock)
}

// ahead says how far a clock is ahead of another, or behind it.
func ahead(ms api.Milliseconds) string {
	if ms < 0 {
		return (-ms).Rounded().String() + " behind"
	}
	return ms.Rounded().String() + " ahead"
}
