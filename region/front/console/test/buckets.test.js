import assert from 'node:assert/strict';
import { test } from 'node:test';
import {
  bucketHash,
  bucketName,
  bucketText,
  byDenials,
  byUse,
  classes,
  explainPath,
  falseDenials,
  owes,
  parseHash,
} from '../static/buckets.js';
import { bucket } from './overviews.js';

test('the address of a bucket leads back to it, whatever its names are', () => {
  for (const descriptors of [
    {},
    { account: '42' },
    { limit: 'x', domain: 'y' },
    { 'a&b': 'c=d #?/%' },
    { ä: '日本' },
  ]) {
    const b = { limit: 'a b/c', domain: 'api', descriptors };
    assert.deepEqual(parseHash(bucketHash(b)), b);
  }
  for (const other of ['', '#/', '#/bucket', '#/bucket?', '#/bucket?domain=api', '#main']) {
    assert.equal(parseHash(other), null, other);
  }
});

test('the node is asked for names as they are', () => {
  const b = { limit: 'a b/c', domain: '', descriptors: { 'x&y': '1 2' } };
  assert.equal(explainPath(b), '/v1/explain/a%20b%2Fc?x%26y=1+2');
});

test('names do not depend on the order of descriptors', () => {
  const [x, y] = [
    { a: '1', b: '2' },
    { b: '2', a: '1' },
  ].map((descriptors) => ({ limit: 'l', domain: 'd', descriptors }));
  assert.equal(bucketName(x), bucketName(y));
  assert.equal(bucketText(x), 'l a=1 b=2');
});

test('what a bucket owes is said, also nothing, if its limit is charged always', () => {
  assert.equal(owes({ owed: 1200 }, ', '), ', owes 1,200');
  assert.equal(owes({ owed: 0 }, ', charged always: '), ', charged always: owes 0');
  assert.equal(owes({}, ', '), '');
});

test('what is free for each class is said, if the limit has classes', () => {
  const all = [
    { class: 'batch', may_use: 600, free: 0 },
    { class: 'interactive', may_use: 1000, free: 1400 },
  ];
  assert.equal(classes({ classes: { by: 'priority', all } }), ' (batch 0, interactive 1,400)');
  assert.equal(classes({}), '');
});

test('a denial may be false where others have units free', () => {
  assert.deepEqual(falseDenials(bucket('1', 3, ['eu', 50, 50], ['us', 30, 10], ['ap', 20, 15])), {
    without: ['eu'],
    elsewhere: 25,
  });
  assert.equal(
    falseDenials(bucket('1', 0, ['eu', 50, 50], ['us', 50, 10])),
    null,
    'nothing was denied',
  );
  assert.equal(falseDenials(bucket('1', 3, ['eu', 50, 50], ['us', 50, 50])), null, 'all is used');
  assert.equal(falseDenials(bucket('1', 3, ['eu', 50, 49], ['us', 50, 10])), null, 'all have some');
});

test('the order of buckets', () => {
  const all = [
    bucket('1', 0, ['eu', 9, 1]),
    bucket('2', 4, ['eu', 9, 5]),
    bucket('3', 9, ['eu', 9, 3]),
  ];
  const accounts = (of) => of.map((b) => b.descriptors.account).join('');
  assert.equal(accounts(byUse(all)), '231');
  assert.equal(accounts(byDenials(all)), '32');
});
