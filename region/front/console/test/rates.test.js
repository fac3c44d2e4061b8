import assert from 'node:assert/strict';
import { test } from 'node:test';
import { known, perRegion, rates, regionsOf } from '../static/rates.js';
import { node, overview } from './overviews.js';

const plain = (map) =>
  Object.fromEntries([...map].map(([k, v]) => [k, v instanceof Map ? plain(v) : v]));

test('rates are differences by the time of each node', () => {
  const before = overview(0, [
    node('eu', 'n1', 0, { a: [10, 1] }),
    node('eu', 'n2', 0, { a: [5, 0] }),
    node('us', 'n1', 0, { a: [100, 0], b: [1, 1] }),
  ]);
  const now = overview(2, [
    node('eu', 'n1', 2, { a: [30, 5] }),
    node('eu', 'n2', 4, { a: [13, 0] }),
    node('us', 'n1', 2, { a: [100, 0], b: [3, 1], c: [4, 0] }),
  ]);
  assert.deepEqual(plain(rates(before, now)), {
    'api a': { eu: { admitted: 12, denied: 2 }, us: { admitted: 0, denied: 0 } },
    'api b': { us: { admitted: 1, denied: 0 } },
    'api c': { us: { admitted: 2, denied: 0 } },
  });
  assert.deepEqual(plain(perRegion(rates(before, now), ['eu', 'us'])), {
    eu: { admitted: 12, denied: 2 },
    us: { admitted: 3, denied: 0 },
  });
});

test('of a node that is new, silent or started again nothing is known', () => {
  const before = overview(0, [
    node('eu', 'n1', 0, { a: [10, 0] }),
    node('us', 'n1', 0, { a: [9, 0] }),
  ]);
  const again = { ...node('eu', 'n1', 1, { a: [2, 0] }), started: 'later' };
  const now = overview(1, [again, node('ap', 'n1', 1, { a: [5, 0] })], ['us/n1']);
  assert.deepEqual(plain(rates(before, now)), {});
  assert.deepEqual(known(before, now), []);
  assert.deepEqual(regionsOf(now), ['ap', 'eu', 'us']);
});

test('an overview that is told twice has no rates', () => {
  const o = overview(0, [node('eu', 'n1', 0, { a: [10, 0] })]);
  assert.deepEqual(plain(rates(o, o)), {});
});

test('a count that falls is none below zero', () => {
  const before = overview(0, [node('eu', 'n1', 0, { a: [10, 9] })]);
  const now = overview(1, [node('eu', 'n1', 1, { a: [3, 12] })]);
  assert.deepEqual(plain(rates(before, now)), { 'api a': { eu: { admitted: 0, denied: 3 } } });
});
