// Prints what watching costs: the bytes of an hour, and the processor time of ten watchers, with
// three regions in one process and 100 buckets in use. See make console-figures.

import { readFileSync } from 'node:fs';
import { get } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { regions } from './regions.js';

const seconds = Number(process.env.SECONDS ?? 30);
const watchers = 10;
const buckets = 100;
const ticks = 100; // of /proc/PID/stat a second, on Linux

const node = await regions();
const at = [...node.at.values()];
let turn = 0;
const load = setInterval(() => {
  turn++;
  fetch(`http://${at[turn % at.length].http}/v1/check`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: JSON.stringify({ domain: 'api', descriptors: { account: `account-${turn % buckets}` } }),
  }).then((r) => r.arrayBuffer());
}, 20);

// used returns the processor time of the node, in seconds.
function used() {
  const fields = readFileSync(`/proc/${node.child.pid}/stat`, 'utf8').split(') ')[1].split(' ');
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

// share returns the percentage of a core that the node used over some seconds.
async function share() {
  const before = used();
  await sleep(seconds * 1000);
  return (100 * (used() - before)) / seconds;
}

// watch counts the bytes of a watch until it is ended.
function watch(coding) {
  const count = { bytes: 0, events: 0 };
  const headers = coding ? { 'Accept-Encoding': coding } : {};
  const request = get(`http://${at[0].admin}/v1/watch`, { headers }, (r) => {
    count.coding = r.headers['content-encoding'] ?? 'plain';
    r.on('data', (piece) => {
      count.bytes += piece.length;
    });
    r.on('error', () => {}); // it is ended from here
  });
  request.on('error', () => {});
  return { count, end: () => request.destroy() };
}

await sleep(10_000);
const shares = [await share()];
const all = [watch('identity')];
await sleep(2000);
shares.push(await share());
all.push(...Array.from({ length: watchers - 1 }, () => watch('gzip')));
await sleep(2000);
const before = all.map((w) => w.count.bytes);
shares.push(await share());
const an = (i) =>
  `${((((all[i].count.bytes - before[i]) / seconds) * 3600) / 1e6).toFixed(1)} MB an hour ` +
  `(${all[i].count.coding})`;
console.log(`a watch with ${buckets} buckets in use: ${an(0)}, ${an(1)}`);
console.log(
  `processor: ${shares[0].toFixed(2)} % of a core without watchers, ` +
    `${shares[1].toFixed(2)} % with one, ` +
    `${shares[2].toFixed(2)} % with ${watchers}`,
);
all.forEach((w) => w.end());
await sleep(1000);
console.log(`processor: ${(await share()).toFixed(2)} % of a core after they went`);
clearInterval(load);
await node.end();
process.exit(0);
