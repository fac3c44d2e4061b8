package algorithms

// CellAt returns the number of the cell of the given length that holds store time t.
func CellAt(t, window int64) int64 { return t / window }

// lost says whether a cell's ledger may have been lost with the data at lostAt (0: never): the store's data then
// concerned the cell of that moment and the one after. Such a cell counts as fully lent and fully used.
func lost(cell, window, lostAt int64) bool {
	return lostAt > 0 && cell <= CellAt(lostAt, window)+1
}

// net is what a row adds to the entitlement.
func (r Row) net() int64 { return r.Borrowed - r.Returned - r.Lent + r.Regained }

// rights returns S of a cell.
func (b *bucket) rights(cell, window, lostAt, entitlement int64) int64 {
	if lost(cell, window, lostAt) {
		return 0
	}
	for _, row := range b.rows[cell] {
		entitlement += row.net()
	}
	return entitlement
}

// lentOut returns the net lent out of a cell.
func (b *bucket) lentOut(cell int64) int64 {
	var sum int64
	for _, row := range b.rows[cell] {
		sum += row.Lent - row.Regained
	}
	return sum
}

func (b *bucket) setRow(cell int64, peer string, row Row) {
	if b.rows[cell] == nil {
		b.rows[cell] = map[string]Row{}
	}
	b.rows[cell][peer] = row
}

// keep drops the rows of finished cells; the bucket is useful until the end of the cell after this one.
func (b *bucket) keep(cell, window int64) {
	for k := range b.rows {
		if k < cell {
			delete(b.rows, k)
		}
	}
	b.expires = (cell + 2) * window
}

// limiter is one algorithm at work on one bucket at one moment.
type limiter interface {
	fits(cost int64) bool
	retry(cost int64) int64 // after how many us cost fits if nothing else happens; -1: never on the entitlement alone
	take(cost int64)
	remaining() int64
	spare(cell int64) int64 // rights of a cell, this one or the next, that nothing has used
	state() State
	save(*bucket)
}
