// Who lent what to whom, out of what the regions tell of a bucket.

// trades returns the loans that last in the cell of each region, one for each pair of regions with
// any: what the lender says that it lent less what it has back, and what the borrower says that it
// has. What the lender alone counts is on its way, or the borrower did not answer.
//
//   { from: 'eu-west', to: 'us-east', units: 21, arrived: 21 }
export function trades(regions) {
  const all = new Map();
  const of = (from, to) => {
    const name = JSON.stringify([from, to]);
    if (!all.has(name)) all.set(name, { from, to, lent: null, arrived: null });
    return all.get(name);
  };
  for (const v of regions) {
    for (const r of v.rights.filter((row) => row.cell === v.cell)) {
      if (r.lent > 0) of(v.region, r.region).lent = r.lent - r.regained;
      if (r.borrowed > 0) of(r.region, v.region).arrived = r.borrowed - r.returned;
    }
  }
  return [...all.values()]
    .map(({ from, to, lent, arrived }) => ({
      from,
      to,
      units: lent ?? arrived,
      arrived: arrived ?? 0,
    }))
    .filter((t) => t.units > 0)
    .sort((a, b) => b.units - a.units || a.from.localeCompare(b.from) || a.to.localeCompare(b.to));
}

// balance returns what a region has lent and borrowed in all.
export function balance(region, all) {
  const add = (rows) => rows.reduce((total, t) => total + t.units, 0);
  return {
    lent: add(all.filter((t) => t.from === region)),
    borrowed: add(all.filter((t) => t.to === region)),
  };
}
