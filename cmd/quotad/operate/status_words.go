package operate

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/cmd/quotad/show"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/region/memory/store"
)

// nodeStatus is the API's answer, to be printed.
type nodeStatus struct{ *quotadv1.StatusResponse }

// storePlace says which store it is.
func storePlace(s *quotadv1.StoreStatus, generation uint64) string {
	text := fmt.Sprintf("%s %s, generation %d", show.Name(s.GetKind()), show.Name(s.GetAddress()), generation)
	if s.GetId() != "" {
		text += ", id " + show.Name(s.GetId())
	}
	if len(s.GetData()) > 0 {
		text += ", data " + strings.Join(show.Names(s.GetData()), " ")
	}
	return text
}

// storeState says in words how the store is.
func storeState(s *quotadv1.StoreStatus) string {
	var parts []string
	if s.GetStopped() != "" {
		parts = append(parts, "NOT USED: "+show.Detail(s.GetStopped()))
	}
	for _, r := range s.GetRivals() {
		parts = append(parts, rivalWords(r))
	}
	if len(s.GetOutOfReach()) > 0 {
		parts = append(parts, "OUT OF REACH: "+strings.Join(show.Names(s.GetOutOfReach()), " ")+
			", decided as on_store_failure says")
	}
	for _, r := range s.GetRefusing() {
		parts = append(parts, fmt.Sprintf("REFUSES CALLS: %s (%d so far; %s)", show.Name(r.Kind),
			r.Calls, show.Name(r.Advice)))
	}
	if len(parts) == 0 {
		parts = append(parts, "in reach")
	}
	if s.GetLastLoss() == nil {
		parts = append(parts, "no loss known")
	} else {
		parts = append(parts, "last lost data at "+s.GetLastLoss().AsTime().Format(time.RFC3339))
	}
	switch s.GetMaxmemoryPolicy() {
	case "":
		parts = append(parts, "maxmemory-policy not known")
	case store.NoEviction:
		parts = append(parts, store.NoEviction)
	default:
		parts = append(parts, "MAY FORGET BUCKETS: set maxmemory-policy noeviction, it is "+
			show.Name(s.GetMaxmemoryPolicy()))
	}
	if s.GetClockApart() != nil {
		parts = append(parts, "clock "+ahead(s.GetClockApart()))
	}
	return strings.Join(parts, ", ")
}

// rivalWords says which other store a node of the region has.
func rivalWords(r *quotadv1.StoreRival) string {
	does := "decides with it"
	switch {
	case r.Hearsay:
		does += " as gossip says, and does not answer at its peer port"
	case r.Stopped:
		does = "has stopped using it"
	}
	return fmt.Sprintf("A SECOND STORE: %s has store %s and %s", show.Name(r.Node), show.Name(r.Id),
		does)
}

// matesWords names the other nodes of the region, and says if they are not as many as configured.
func matesWords(mates []string, nodes int64) string {
	text := show.OrNone(strings.Join(show.Names(mates), ", "))
	if nodes > 0 && int64(len(mates))+1 != nodes {
		text += fmt.Sprintf("; nodes says %d, gossip sees %d", nodes, len(mates)+1)
	}
	return text
}

// documentsWords says what is noteworthy of the limits documents; quotad status --documents has the
// rest.
func documentsWords(d *quotadv1.DocumentsStatus) (text string) {
	if d.GetHeld() > 0 {
		text = "; an older document still binds " + show.Counted(int(d.GetHeld()), "limit")
	}
	for _, r := range d.GetRegions() {
		if r.Waited != nil {
			text += fmt.Sprintf(", WAITS FOR %s, for %s", show.Name(r.Region),
				show.Span(r.Waited.AsDuration().Round(100*time.Millisecond)))
		}
		if r.GetRefused() != "" {
			text += "; NOT TAKEN: " + show.Detail(r.GetRefused())
		}
	}
	if d.GetFileRefused() != "" {
		text += "; ITS FILE IS PASSED OVER: " + show.Detail(d.GetFileRefused())
	}
	return text
}

// rolesWords reports whether callers are asked who they are.
func rolesWords(r *quotadv1.RolesStatus) string {
	if r == nil {
		return "none"
	}
	text := show.Counted(int(r.Callers), "caller")
	if r.GetRefused() != "" {
		text += "; THE FILE AS IT IS NOW IS NOT IN FORCE: " + show.Detail(r.GetRefused())
	}
	return text
}

func recoveryWords(r *quotadv1.RecoveryStatus) string {
	var closed string
	for _, c := range r.GetClosed() {
		closed += fmt.Sprintf("; KEYS OF %s ARE ANSWERED recovering UNTIL %s", show.Name(c.Limit),
			c.Until.AsTime().Format(time.RFC3339))
	}
	for _, l := range r.GetLimits() {
		closed += fmt.Sprintf("; %s of %s NOT WHOLE SINCE %s", show.Counted(int(l.Buckets), "bucket"), show.Name(l.Limit),
			l.Since.AsTime().Format(time.RFC3339))
	}
	if r.GetWaiting()+r.GetRecovered()+r.GetPartlyKnown() == 0 {
		return "nothing to restore" + closed
	}
	return fmt.Sprintf("%s waiting, %d restored, %d of them but for regions that did not tell",
		show.Counted(int(r.GetWaiting()), "bucket"), r.GetRecovered(), r.GetPartlyKnown()) + closed
}

func journalWords(j *quotadv1.JournalStatus) string {
	whole := "whole"
	switch {
	case j.GetFailed():
		whole = "FAILED: nothing is lent until the node starts anew"
	case !j.GetWhole():
		whole = "not known to be whole"
	case j.GetWholeSince() != nil:
		whole = "whole since " + j.GetWholeSince().AsTime().Format(time.RFC3339)
	}
	return fmt.Sprintf("%s, opened %s, commit %d, %s, %s", whole, show.Counted(int(j.GetIncarnation()),
		"time"), j.GetSequence(),
		show.Counted(int(j.GetRows()), "row"), show.Counted(int(j.GetCheckpoints()), "checkpoint"))
}

func localWords(l *quotadv1.LocalStatus) string {
	if l.GetUnits() == 0 {
		return "nothing admitted without the store"
	}
	return fmt.Sprintf("%s of %s admitted without the store, %d not charged there yet",
		show.Counted(int(l.GetUnits()), "unit"), show.Counted(int(l.Buckets), "bucket"), l.GetUnbooked())
}

// peerRow is a row of a table about another region, with a word for one that does not answer.
func peerRow(p *quotadv1.Peer, degraded string) string {
	state, clock := "ok", "-"
	if p.Degraded {
		state = degraded
	}
	if p.ClockApart != nil {
		clock = ahead(p.ClockApart)
	}
	if !p.Heard {
		return show.Name(p.Region) + "\t" + state + "\tnever\t-\t" + clock
	}
	return fmt.Sprintf("%s\t%s\t%s ago\t%s\t%s", show.Name(p.Region), state, toMilliseconds(p.Age),
		toMilliseconds(p.RoundTrip), clock)
}

// ahead says how far a clock is ahead of another, or behind it.
func ahead(by *durationpb.Duration) string {
	d := toMilliseconds(by)
	if d < 0 {
		return (-d).String() + " behind"
	}
	return d.String() + " ahead"
}

// toMilliseconds rounds a duration, for people.
func toMilliseconds(d *durationpb.Duration) time.Duration {
	return d.AsDuration().Round(time.Millisecond)
}
