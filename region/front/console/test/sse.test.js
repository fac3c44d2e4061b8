import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parser } from '../static/sse.js';

const text =
  'retry: 5000\n\nevent: overview\ndata: {"a":\ndata: 1}\n\n: still there\n\n' +
  'data:two\r\n\r\nevent: none\n\ndata\n\nevent: cut off\ndata: never';
const want = [
  ['overview', '{"a":\n1}'],
  ['message', 'two'],
  ['message', ''],
];

test('events are read whatever the pieces are', () => {
  for (const length of [1, 2, 3, 7, text.length]) {
    const got = [];
    const feed = parser((name, data) => got.push([name, data]));
    for (let at = 0; at < text.length; at += length) feed(text.slice(at, at + length));
    assert.deepEqual(got, want, `pieces of ${length}`);
  }
});

test('an event without end is not kept', () => {
  const feed = parser(() => assert.fail('there is no event'));
  assert.throws(() => {
    for (;;) feed('x'.repeat(1 << 20));
  }, /too long/);
  const lines = parser(() => assert.fail('there is no event'));
  assert.throws(() => {
    for (;;) lines(`data: ${'x'.repeat(1 << 20)}\n`);
  }, /too long/);
});
