package view

import (
	"fmt"
	"strings"
	"time"

	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
)

// sentence says why the last request on a bucket was decided as it was, and what would become of
// the next one.
func sentence(e *quotadv1.ExplainResponse, now time.Time) string {
	in := lastOf(e.GetRegions())
	if in == nil {
		return strings.Join(nonempty("No node remembers a request on this bucket.", usedWorldwide(e)), " ")
	}
	last := in.GetLast()
	verb := "denied"
	if last.GetAllowed() {
		verb = "admitted"
	}
	head := fmt.Sprintf("The last request, %s in %s, was %s%s", ago(now, last.GetAt().AsTime()),
		in.GetRegion(), verb, because(in, last, e.GetLimitUnits()))
	return strings.Join(nonempty(head, owes(in), classes(in), elsewhere(e, in, last), next(in, now)), " ")
}

// because says why a region's last request was decided as it was, as the end of a sentence.
func because(in *quotadv1.BucketInRegion, last *quotadv1.LastRequest, limit int64) string {
	region := in.GetRegion()
	holds := fmt.Sprintf("of the %d units that %s holds now %d are used", in.GetShare(), region,
		in.GetUsed())
	if in.Problem != nil {
		holds = "what " + region + " holds now is not known (" + in.GetProblem() + ")"
	}
	switch last.GetReason() {
	case quotadv1.Reason_REASON_WITHIN_LIMIT:
		return ": it fitted; " + holds + "."
	case quotadv1.Reason_REASON_OVER_LIMIT:
		text := ": it cost more than " + region + " had left; " + holds + "."
		if in.GetClasses() != nil {
			text = ": it cost more than " + region + " had left, or left for its class; " + holds + "."
		}
		if last.GetFromMemory() {
			text += fmt.Sprintf(" Node %s remembered that and did not ask the store again.",
				last.GetNode())
		}
		return text
	case quotadv1.Reason_REASON_RECOVERING:
		if in.GetClosedUntil() != nil {
			return ": the region's store lost its data, and what was used before may still count. The bucket is closed until " +
				in.GetClosedUntil().AsTime().UTC().Format(time.RFC3339) + "."
		}
		return ": the region's store had lost its data, and what was used before was not known. The bucket is open again."
	case quotadv1.Reason_REASON_EXCEEDS_REGION_CAPACITY:
		return fmt.Sprintf(": it cost more than %s can hold at once, with its fixed split of %d and all that others may lend it.",
			region, in.GetEntitlement())
	case quotadv1.Reason_REASON_NEVER:
		return fmt.Sprintf(": it cost more than the whole limit of %d.", limit)
	case quotadv1.Reason_REASON_QUEUE_FULL:
		return ": so many requests waited for the region's store that it had no time for this one before its deadline."
	case quotadv1.Reason_REASON_STORE_FAILURE:
		return ": the region's store did not answer, and the limit says on_store_failure: deny."
	case quotadv1.Reason_REASON_STORE_FAILURE_LOCAL:
		if last.GetAllowed() {
			return fmt.Sprintf(": the region's store did not answer, and node %s had room in its own part (on_store_failure: local).",
				last.GetNode())
		}
		return fmt.Sprintf(": the region's store did not answer, and node %s had used up its own part (on_store_failure: local).",
			last.GetNode())
	case quotadv1.Reason_REASON_STORE_FAILURE_ALLOWED:
		return ": the region's store did not answer, and the limit says on_store_failure: allow."
	}
	return "."
}

// owes says how much a region owes. Empty: nothing.
func owes(in *quotadv1.BucketInRegion) string {
	if in.GetOwed() == 0 {
		return ""
	}
	return fmt.Sprintf("%s owes %d, which were charged although they did not fit (charge: always). Nothing fits there until that is covered.",
		in.GetRegion(), in.GetOwed())
}

// classes says which classes have used their part while units are free. Empty: none.
func classes(in *quotadv1.BucketInRegion) string {
	var used []string
	for _, c := range in.GetClasses().GetAll() {
		if c.GetFree() == 0 && in.GetFree() > 0 {
			used = append(used, fmt.Sprintf("%s (up to %d)", c.GetClass(), c.GetMayUse()))
		}
	}
	if len(used) == 0 {
		return ""
	}
	return fmt.Sprintf("%d units are free there, and not for %s.", in.GetFree(), listed(used))
}

// elsewhere says of a request that was denied over its limit why the other regions' units did not
// help. Empty: there is nothing to say.
func elsewhere(e *quotadv1.ExplainResponse, in *quotadv1.BucketInRegion,
	last *quotadv1.LastRequest) string {
	if last.GetAllowed() || last.GetReason() != quotadv1.Reason_REASON_OVER_LIMIT ||
		e.GetUsed() >= e.GetLimitUnits() {
		return usedWorldwide(e)
	}
	if d := in.GetDegraded(); len(d) > 0 {
		names := make([]string, len(d))
		for i, one := range d {
			names[i] = one.GetRegion()
			if one.GetSince() != nil {
				names[i] += " (since " + one.GetSince().AsTime().UTC().Format(time.TimeOnly) + " UTC)"
			}
		}
		return fmt.Sprintf("%s cannot reach %s, so it keeps to its fixed split of %d and what was lent before. %s",
			in.GetRegion(), listed(names), in.GetEntitlement(), usedWorldwide(e))
	}
	var holders []string
	for _, r := range e.GetRegions() {
		if free := r.GetFree(); r != in && free > 0 {
			holders = append(holders, fmt.Sprintf("%s %d", r.GetRegion(), free))
		}
	}
	text := usedWorldwide(e)
	if len(holders) > 0 {
		text += " Other regions hold unused units (" + listed(holders) +
			"), which move as far as they do not expect to need them."
	}
	return text
}

// usedWorldwide says how much of the limit is used.
func usedWorldwide(e *quotadv1.ExplainResponse) string {
	switch {
	case e.GetLimitUnits() == 0:
		return ""
	case e.GetUsed() >= e.GetLimitUnits():
		return fmt.Sprintf("All %d units of the limit are used worldwide.", e.GetLimitUnits())
	case len(e.GetSilent()) > 0:
		return fmt.Sprintf("In the regions that answered %d of %d units are used; %s did not answer.",
			e.GetUsed(), e.GetLimitUnits(), listed(e.GetSilent()))
	}
	return fmt.Sprintf("Worldwide %d of %d units are used.", e.GetUsed(), e.GetLimitUnits())
}

// next says what would become of a request of one unit in a region. Empty: that is not known.
func next(in *quotadv1.BucketInRegion, now time.Time) string {
	d := in.GetNow()
	switch {
	case d == nil:
		return ""
	case d.GetAllowed():
		return fmt.Sprintf("A request of one unit would be admitted in %s now.", in.GetRegion())
	case d.GetRetryAfter() != nil:
		wait := d.GetRetryAfter().AsDuration()
		form := time.TimeOnly
		if wait > day {
			form = time.DateTime
		}
		return fmt.Sprintf("A request of one unit would be denied in %s now, and told to come again in %s, at %s UTC.",
			in.GetRegion(), rounded(wait), now.Add(wait).UTC().Format(form))
	}
	return fmt.Sprintf("A request of one unit would be denied in %s now.", in.GetRegion())
}

// ago says how long ago a time was.
func ago(now, at time.Time) string {
	if d := now.Sub(at); d >= time.Second {
		return rounded(d) + " ago"
	}
	return "just now"
}

const day = 24 * time.Hour

// rounded returns a duration to the second, a short one to the millisecond, and one of more than a
// day to the hour.
func rounded(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d > day:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// listed joins names as a sentence does.
func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:len(names)-1], ", ") + " and " + names[len(names)-1]
}

func nonempty(texts ...string) (all []string) {
	for _, text := range texts {
		if text != "" {
			all = append(all, text)
		}
	}
	return all
}
