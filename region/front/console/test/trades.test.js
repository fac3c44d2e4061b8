import assert from 'node:assert/strict';
import { test } from 'node:test';
import { balance, trades } from '../static/trades.js';

const row = (cell, region, lent, returned, borrowed, regained) => ({
  cell,
  region,
  lent,
  returned,
  borrowed,
  regained,
});
const view = (region, cell, ...rights) => ({ region, cell, rights });

test('loans of the present cell, less what was given back', () => {
  const all = trades([
    view('eu', 7, row(7, 'us', 30, 0, 0, 10), row(6, 'us', 99, 0, 0, 0), row(8, 'us', 5, 0, 0, 0)),
    view('us', 7, row(7, 'eu', 0, 10, 28, 0), row(7, 'ap', 3, 0, 0, 3)),
    view('ap', 7, row(7, 'us', 0, 3, 3, 0)),
  ]);
  assert.deepEqual(all, [{ from: 'eu', to: 'us', units: 20, arrived: 18 }]);
  assert.deepEqual(balance('eu', all), { lent: 20, borrowed: 0 });
  assert.deepEqual(balance('us', all), { lent: 0, borrowed: 20 });
});

test('a loan is seen though one of its regions did not answer', () => {
  assert.deepEqual(trades([view('us', 7, row(7, 'eu', 0, 0, 8, 0))]), [
    { from: 'eu', to: 'us', units: 8, arrived: 8 },
  ]);
  assert.deepEqual(trades([view('eu', 7, row(7, 'us', 8, 0, 0, 0))]), [
    { from: 'eu', to: 'us', units: 8, arrived: 0 },
  ]);
});

test('larger loans come first', () => {
  const all = trades([view('eu', 1, row(1, 'us', 1, 0, 0, 0), row(1, 'ap', 2, 0, 0, 0))]);
  assert.deepEqual(
    all.map((t) => t.to),
    ['ap', 'us'],
  );
});
