package api

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/quotad/quotad/algorithms"
	quotadv1 "github.com/quotad/quotad/proto/quotad/v1"
	"github.com/quotad/quotad/quantity"
	"github.com/quotad/quotad/region/admit"
)

// CheckColumns implements quotad.v1.QuotaService. Each row is decided as a request of CheckBatch.
func (s *service) CheckColumns(ctx context.Context,
	m *quotadv1.CheckColumnsRequest) (*quotadv1.CheckColumnsResponse, error) {
	if err := s.server.mayName(ctx, m.GetDomain()); err != nil {
		return nil, toStatus(err)
	}
	all, err := rowRequests(m, callerOf(ctx))
	if err != nil {
		return nil, toStatus(err)
	}
	decided, err := s.node.CheckBatch(ctx, all)
	if err != nil {
		return nil, failed(ctx, err)
	}
	return columnsMessage(decided), nil
}

// rowRequests returns the requests of the rows. The error is a *admit.FieldError about what all
// rows share. What is wrong with one row is found when that row is decided.
func rowRequests(m *quotadv1.CheckColumnsRequest, caller string) ([]admit.Request, error) {
	rows, err := countRows(m)
	if err != nil {
		return nil, err
	}
	if err := checkShape(m); err != nil {
		return nil, err
	}
	all := make([]admit.Request, rows)
	for i := range all {
		q := &all[i]
		q.Domain, q.Cost, q.Caller = m.Domain, 1, caller
		if len(m.Costs) > 0 {
			q.Cost = quantity.Units(m.Costs[i])
		}
		q.Descriptors = make(map[string]string, len(m.Names))
		for n, name := range m.Names {
			q.Descriptors[name] = m.Values[i*len(m.Names)+n]
		}
	}
	return all, nil
}

// countRows returns the number of rows. Without names each cost is a row.
func countRows(m *quotadv1.CheckColumnsRequest) (rows int, err error) {
	names, values, costs := len(m.Names), len(m.Values), len(m.Costs)
	switch {
	case names == 0 && values > 0:
		return 0, &admit.FieldError{Field: "names",
			Problem: "is empty, but there are values; send a name for each value of a row"}
	case names == 0:
		rows = costs
	case values%names != 0:
		return 0, admit.Wrong("values", "has %d entries, which do not make whole rows of %d; "+
			"send as many for each row as there are names", values, names)
	default:
		rows = values / names
	}
	if err := batchSize("values", rows); err != nil {
		return 0, err
	}
	if costs != 0 && costs != rows {
		return 0, admit.Wrong("costs", "has %d entries for %d rows; send one for each row, or none",
			costs, rows)
	}
	return rows, nil
}

// checkShape returns a *admit.FieldError if the domain or the names are wrong.
func checkShape(m *quotadv1.CheckColumnsRequest) error {
	if len(m.Names) > admit.MaxDescriptors {
		return admit.Wrong("names", "has %d entries; send at most %d", len(m.Names),
			admit.MaxDescriptors)
	}
	row := admit.Request{Domain: m.Domain, Cost: 1, Descriptors: map[string]string{}}
	for _, name := range m.Names {
		if _, twice := row.Descriptors[name]; twice {
			return &admit.FieldError{Field: "names", Problem: "has " + quote(name) + " twice"}
		}
		row.Descriptors[name] = ""
	}
	return row.Validate()
}

// columnsMessage returns the answer to a call with a row for each decision.
func columnsMessage(decided []admit.Decision) *quotadv1.CheckColumnsResponse {
	rows := len(decided)
	m := &quotadv1.CheckColumnsResponse{Allowed: make([]bool, rows),
		Reasons: make([]quotadv1.Reason, rows), DecidedBy: make([]uint32, rows),
		Remaining: make([]int64, rows), RetryAfterUs: make([]int64, rows),
		DelayUs: make([]int64, rows), AtUs: make([]int64, rows),
		Node: decided[0].Node, Region: decided[0].Region}
	var table deciders
	waits, delayed, oneTime := false, false, true
	for i := range decided {
		d := &decided[i]
		m.Allowed[i], m.Reasons[i], m.DecidedBy[i] = d.Allowed, reasons[d.Reason], table.place(d)
		m.Remaining[i], m.AtUs[i] = int64(d.Remaining), int64(d.At)
		if d.RetryAfter > 0 {
			m.RetryAfterUs[i], waits = roundUp(d.RetryAfter, time.Microsecond), true
		}
		if d.Delay > 0 {
			m.DelayUs[i], delayed = roundUp(d.Delay, time.Microsecond), true
		}
		oneTime = oneTime && d.At == decided[0].At
		if text := problemOf(*d); text != "" {
			m.Problems = append(m.Problems, &quotadv1.RowProblem{Row: uint32(i), Problem: text})
		}
	}
	if !waits {
		m.RetryAfterUs = nil
	}
	if !delayed {
		m.DelayUs = nil
	}
	if oneTime {
		m.AtUs = m.AtUs[:1]
	}
	m.Limits = table.limits
	return m
}

// decider is what decisions of one limit have in common.
type decider struct {
	limit       string
	algorithm   algorithms.Kind
	units       quantity.Units
	entitlement quantity.Units
	window      time.Duration
	degraded    bool
}

// deciders is the table of the limits that decided.
type deciders struct {
	limits []*quotadv1.DecidingLimit
	places map[decider]uint32
	// The limit of the decision before, and its place. Most rows have that of the row before.
	last      decider
	lastPlace uint32
}

// place returns the place of a decision's limit in the table, from 1, and adds it if it is new. It
// returns 0 if no limit decided.
func (t *deciders) place(d *admit.Decision) uint32 {
	if d.Limit == "" {
		return 0
	}
	by := decider{d.Limit, d.Algorithm, d.LimitUnits, d.Entitlement, d.Window, d.Degraded}
	if by == t.last {
		return t.lastPlace
	}
	at, known := t.places[by]
	if !known {
		t.limits = append(t.limits, &quotadv1.DecidingLimit{Limit: d.Limit,
			Algorithm: string(d.Algorithm), LimitUnits: int64(d.LimitUnits),
			Entitlement: int64(d.Entitlement), Window: durationpb.New(d.Window),
			Degraded: d.Degraded})
		at = uint32(len(t.limits))
		if t.places == nil {
			t.places = map[decider]uint32{}
		}
		t.places[by] = at
	}
	t.last, t.lastPlace = by, at
	return at
}
