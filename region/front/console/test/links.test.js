import assert from 'node:assert/strict';
import { test } from 'node:test';
import { degraded, links } from '../static/links.js';
import { backoff } from '../static/stream.js';
import { number, percent, rate, span } from '../static/format.js';
import { node, overview } from './overviews.js';

const peer = (region, more) => ({
  region,
  heard: true,
  age_ms: 100,
  round_trip_ms: 80,
  degraded: false,
  ...more,
});

test('a link is as bad as the worst of its nodes says', () => {
  const o = overview(0, [
    node('eu', 'n1', 0, {}, { peers: [peer('us', { clock_apart_ms: -3 })] }),
    node(
      'eu',
      'n2',
      0,
      {},
      {
        peers: [peer('us', { round_trip_ms: 70, degraded: true, age_ms: 4000, clock_apart_ms: 1 })],
      },
    ),
    node(
      'us',
      'n1',
      0,
      {},
      { peers: [peer('eu', { heard: false, degraded: true, round_trip_ms: 0 })] },
    ),
  ]);
  assert.deepEqual(links(o).get('eu').get('us'), {
    heard: true,
    degraded: true,
    age: 4000,
    roundTrip: 70,
    clock: -3,
  });
  assert.equal(links(o).get('us').get('eu').roundTrip, null);
  assert.deepEqual(degraded(o), ['eu to us', 'us to eu']);
});

test('the wait before the next attempt grows, and not for ever', () => {
  assert.equal(backoff(0, 1), 1000);
  assert.equal(backoff(0, 0), 500);
  assert.equal(backoff(2, 1), 4000);
  assert.equal(backoff(1000, 1), 15_000);
});

test('numbers for people', () => {
  assert.deepEqual([number(1234567), number(null), number(0)], ['1,234,567', '–', '0']);
  assert.deepEqual([rate(9.94), rate(1234.5), rate(undefined)], ['9.9', '1,235', '–']);
  assert.deepEqual([percent(1, 3), percent(1, 0)], ['33 %', '–']);
  assert.deepEqual([0.5, 80.2, 1000, 61_000, 180_000, 7_200_000, 172_800_000, null].map(span), [
    '0.5 ms',
    '80.2 ms',
    '1 s',
    '61 s',
    '3 min',
    '2 h',
    '2 d',
    '–',
  ]);
});
