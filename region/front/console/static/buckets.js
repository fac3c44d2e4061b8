// Buckets: their names and addresses, what they owe, and whether a denial of one may be false.

import { number } from './format.js';
import { sum } from './rates.js';

// bucketName tells buckets apart.
export const bucketName = (b) => JSON.stringify([b.domain, b.limit, ...pairs(b)]);

// bucketText names a bucket for people.
export const bucketText = (b) => [b.limit, ...pairs(b).map(([k, v]) => `${k}=${v}`)].join(' ');

const pairs = (b) => Object.entries(b.descriptors).sort(([x], [y]) => (x < y ? -1 : 1));

// bucketHash is the address of a bucket's page, and parseHash reads it. A descriptor may be named
// as a parameter is, so descriptors have a prefix. parseHash returns null for any other address.
export function bucketHash(b) {
  const query = new URLSearchParams({ limit: b.limit, domain: b.domain });
  for (const [name, value] of pairs(b)) query.append(`key.${name}`, value);
  return `#/bucket?${query}`;
}

export function parseHash(hash) {
  if (!hash.startsWith('#/bucket?')) return null;
  const query = new URLSearchParams(hash.slice('#/bucket?'.length));
  const descriptors = {};
  for (const [name, value] of query) {
    if (name.startsWith('key.')) descriptors[name.slice(4)] = value;
  }
  if (!query.get('limit')) return null;
  return { limit: query.get('limit'), domain: query.get('domain') ?? '', descriptors };
}

// explainPath is where the node explains a bucket.
export function explainPath(b) {
  const query = new URLSearchParams(b.descriptors);
  if (b.domain) query.set('domain', b.domain);
  return `/v1/explain/${encodeURIComponent(b.limit)}?${query}`;
}

// owes returns how much a bucket owes, in one region or in all, with words before it. It returns
// nothing if its limit is not charged always.
export const owes = (b, before) => (b.owed === undefined ? '' : `${before}owes ${number(b.owed)}`);

// classes returns what is free of a bucket for each class in one region. It returns nothing if its limit
// has none.
export const classes = (v) =>
  v.classes ? ` (${v.classes.all.map((c) => `${c.class} ${number(c.free)}`).join(', ')})` : '';

// falseDenials says whether a bucket's denials may be false: units were denied of late, a region
// has nothing free, and others have. It returns the regions without, and the units free elsewhere.
// Null: no denial looks false.
export function falseDenials(b) {
  if (b.denied_units === 0) return null;
  const without = b.parts.filter((p) => p.free <= 0).map((p) => p.region);
  const elsewhere = sum(b.parts, (p) => Math.max(0, p.free));
  return without.length > 0 && elsewhere > 0 ? { without, elsewhere } : null;
}

// byUse and byDenials order buckets.
export const byUse = (all) =>
  [...all].sort((a, b) => b.admitted_units - a.admitted_units || b.used - a.used);
export const byDenials = (all) =>
  all.filter((b) => b.denied_units > 0).sort((a, b) => b.denied_units - a.denied_units);
