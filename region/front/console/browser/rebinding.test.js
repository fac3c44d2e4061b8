// A page of another site whose name was made to lead to this machine (DNS rebinding), in a real
// browser, before real nodes. To the browser the node is that page's own site, so that nothing but
// the node can refuse what it asks. See make console.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { regions, until } from './regions.js';
import { open, visit } from './visit.js';

const evil = 'evil.example';
const misdirected = 421;
const document = readFileSync(`${import.meta.dirname}/limits.yaml`, 'utf8');

let browser;
let world;
let port;

before(async () => {
  browser = await open(`--host-resolver-rules=MAP ${evil} 127.0.0.1`);
  world = await regions();
  port = new URL(`http://${world.at.get('us-east').admin}`).port;
});

after(async () => {
  await browser?.close();
  await world?.end();
});

const json = (body) => ({
  method: 'POST',
  headers: { 'Content-Type': 'application/json' },
  body: JSON.stringify(body),
});

// What does harm, each as the admin port takes it.
const harms = [
  ['/v1/reset', json({ domain: 'api', limit: 'account', descriptors: { account: '42' } })],
  ['/v1/cut', json({ region: 'eu-west', for: '10s' })],
  ['/v1/rehearse', json({ region: 'ap-south', kill_store: '1s' })],
  [
    '/v1/apply',
    {
      method: 'POST',
      headers: { 'Content-Type': 'application/yaml' },
      body: document.replace('version: 1', 'version: 2').replace('limit: 600', 'limit: 600000'),
    },
  ],
];

// asks has a page ask its own site for something, and returns the code and the text that it reads.
const asks = (page, [path, init]) =>
  page.evaluate(
    async ([to, how]) => {
      const r = await fetch(to, how);
      return [r.status, await r.text()];
    },
    [path, init],
  );

// pageOf opens a page of a host. Whatever the node answers there, its scripts are the host's own: so
// what the test runs in it stands for what the attacker's server sent before the name was rebound.
async function pageOf(host, at = port) {
  const page = await browser.newPage();
  await page.goto(`http://${host}:${at}/`);
  assert.equal(await page.evaluate(() => location.origin), `http://${host}:${at}`);
  return page;
}

test('a rebound page does and reads nothing', async () => {
  const page = await pageOf(evil);
  const reads = ['/v1/status', '/v1/overview', '/v1/policy', '/metrics'].map((path) => [path, {}]);
  for (const one of [...harms, ...reads]) {
    const [code, text] = await asks(page, one);
    assert.equal(code, misdirected, `${one[0]} is answered ${code} ${text}`);
    assert.match(text, /takes requests to localhost and loopback addresses, not to \\?"evil/);
  }
  const check = json({ domain: 'api', descriptors: { account: '42' } });
  const other = await pageOf(evil, new URL(`http://${world.at.get('us-east').http}`).port);
  assert.equal((await asks(other, ['/v1/check', check]))[0], misdirected);
  await other.close();
  await page.close();
});

test('the console works at localhost', async () => {
  const { page, wrong } = await visit(browser, `http://localhost:${port}/`);
  await until(
    'the page is live',
    20,
    async () => (await page.locator('#state').first().textContent()) === 'live',
  );
  assert.deepEqual(await wrong(), []);
  await page.close();
});

// The last one, since it does the harm: each request is one that is refused for its host alone.
test('a page of localhost may do what the rebound one may not', async () => {
  const page = await pageOf('localhost');
  for (const one of harms) {
    const [code, text] = await asks(page, one);
    assert.equal(code, 200, `${one[0]} is answered ${code} ${text}`);
  }
  await page.close();
});
