import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bucketName } from '../static/buckets.js';
import { chosenLimit, History } from '../static/history.js';
import { bucket, node, overview } from './overviews.js';

test('the series of a limit and of a bucket', () => {
  const h = new History();
  const hot = (used) => [bucket('42', 0, ['eu', 60, used], ['us', 40, 0])];
  assert.equal(h.add(overview(0, [node('eu', 'n1', 0, { a: [0, 0] })], [], hot(1))), true);
  assert.equal(h.add(overview(0, [node('eu', 'n1', 0, { a: [0, 0] })])), false, 'it is told twice');
  h.add(overview(1, [node('eu', 'n1', 1, { a: [5, 2] }), node('us', 'n1', 1, {})], [], hot(6)));
  h.add(overview(2, [node('us', 'n1', 2, {})], ['eu/n1']));
  const limit = h.ofLimit('api a');
  assert.deepEqual(limit.admitted, [null, 5, 0]);
  assert.deepEqual(limit.demand, [null, 7, 0]);
  const b = h.ofBucket(bucketName(hot(0)[0]), ['eu', 'us', 'xx']);
  assert.deepEqual(b.used, [1, 6, null]);
  assert.deepEqual(b.limit, [100, 100, null]);
  assert.deepEqual(b.shares, [
    [60, 60, null],
    [40, 40, null],
    [null, null, null],
  ]);
  assert.deepEqual(h.regions, ['eu', 'us']);
});

test('ten minutes are kept, and of many limits the busiest', () => {
  const h = new History();
  const all = (s) => Object.fromEntries([...Array(50)].map((_, i) => [`l${i}`, [s * i, 0]]));
  for (let s = 0; s < 2000; s++) h.add(overview(s, [node('eu', 'n1', s, all(s))]));
  assert.equal(h.points.length, 601);
  assert.equal(h.now.limits.size, 20);
  assert.equal(h.ofLimit('api l49').admitted.at(-1), 49);
  assert.equal(h.ofLimit('api l3').admitted.at(-1), null, 'it is not among the busiest');
  assert.equal(
    h.points.filter((p) => p.all !== null).length,
    1,
    'the rates of all limits are kept once',
  );
});

test('the busiest limit is shown until another one is chosen', () => {
  const o = overview(0, [
    node('eu', 'n1', 0, { a: [1, 0], b: [1, 1] }),
    node('us', 'n1', 0, { a: [1, 2] }),
  ]);
  assert.equal(chosenLimit(o, '').limit, 'a');
  assert.equal(chosenLimit(o, 'api b').limit, 'b');
  assert.equal(chosenLimit(o, 'api gone').limit, 'a');
  assert.equal(chosenLimit(overview(0, [node('eu', 'n1', 0, {})]), ''), undefined);
});
