// The console in a real browser, before a real quotad. See make console.

import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, before, test } from 'node:test';
import { load, regions, start, until } from './regions.js';
import { look, open, visit } from './visit.js';

const images = process.env.IMAGES;
const maxImage = 150_000; // bytes
const sizes = [
  [1440, 900],
  [390, 844],
];
const schemes = ['light', 'dark'];
const anAccount = '#/bucket?limit=account&domain=api&key.account=42';

let browser;
let world;
let at;
let endLoad;

before(async () => {
  mkdirSync(images, { recursive: true });
  browser = await open();
  world = await regions();
  at = `http://${world.at.get('us-east').admin}/`;
  endLoad = load(world.at);
});

after(async () => {
  endLoad?.();
  await browser?.close();
  await world?.end();
});

const text = (page, selector) => page.locator(selector).first().textContent();
const tile = (page, name) =>
  page
    .locator('.tiles div', { has: page.locator('dt', { hasText: name }) })
    .locator('dd span')
    .textContent();
const live = (page) =>
  until('the page is live', 20, async () => (await text(page, '#state')) === 'live');
const admits = (page) =>
  until('units are admitted', 20, async () => Number(await tile(page, 'Admitted a second')) > 1);

async function shoot(page, name) {
  const path = `${images}/${name}.png`;
  await page.screenshot({ path, animations: 'disabled' });
  assert.ok(statSync(path).size < maxImage, `${path} has ${statSync(path).size} bytes`);
}

async function fits(page) {
  const [has, may] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
  assert.ok(has <= may, `the page is ${has} wide, and the window ${may}`);
}

test('first paint and bytes', async (t) => {
  const paints = [];
  let files;
  for (let i = 0; i < 5; i++) {
    const { page } = await visit(browser, at); // in a new context, without a cache
    await live(page);
    paints.push(
      await page.evaluate(
        () => performance.getEntriesByName('first-contentful-paint')[0].startTime,
      ),
    );
    files = await page.evaluate(() =>
      [
        performance.getEntriesByType('navigation')[0],
        ...performance.getEntriesByType('resource').filter((r) => r.name.includes('/console/')),
      ].map((r) => [r.encodedBodySize, r.decodedBodySize]),
    );
    await page.close();
  }
  const sum = (i) => files.reduce((total, f) => total + f[i], 0);
  t.diagnostic(
    `first contentful paint after ${paints.map(Math.round).join(', ')} ms; ` +
      `${files.length} files, ${sum(0)} bytes compressed, ${sum(1)} bytes plain`,
  );
  assert.ok(sum(0) > 0 && sum(0) < 100_000, `${sum(0)} bytes`);
});

for (const [width, height] of sizes) {
  for (const scheme of schemes) {
    test(`all regions and a bucket, ${width} pixels wide, ${scheme}`, async () => {
      const { page, wrong } = await visit(browser, at, { width, height, scheme });
      await live(page);
      await admits(page);
      const legend = () => text(page, 'figure .legend');
      const first = await legend();
      await until('the chart moves', 10, async () => (await legend()) !== first);
      await until(
        'all regions are in the matrix',
        10,
        async () => (await text(page, 'table.matrix')).match(/ ms/g)?.length >= 6,
      );
      await fits(page);
      // So that the charts have something to show.
      await page.waitForTimeout(width > 1000 && scheme === 'light' ? 45_000 : 12_000);
      await shoot(page, `console-${width}-${scheme}`);
      await page.getByRole('link', { name: 'account account=42' }).first().click();
      await until('the bucket is explained', 10, async () =>
        (await text(page, '.sentence')).startsWith('The last request'),
      );
      await until('a loan is drawn', 60, async () => (await page.locator('svg .loan').count()) > 0);
      assert.match(
        await page.locator('svg.ledger').getAttribute('aria-label'),
        /lent \d+ to us-east/,
      );
      await fits(page);
      await shoot(page, `bucket-${width}-${scheme}`);
      await page.getByRole('link', { name: 'All regions' }).click();
      await until(
        'the first view is back',
        5,
        async () => (await text(page, 'h1')) === 'All regions',
      );
      assert.deepEqual(await wrong(), []);
      await page.close();
    });
  }
}

test('what machines can check of accessibility', async () => {
  for (const scheme of schemes) {
    const first = await look(
      browser,
      at,
      async (page) => {
        await live(page);
        await admits(page);
      },
      { scheme },
    );
    const bucket = await look(
      browser,
      at + anAccount,
      async (page) => {
        await until('the bucket is explained', 10, async () =>
          (await text(page, '.sentence')).includes('Worldwide'),
        );
      },
      { scheme },
    );
    assert.deepEqual([...first, ...bucket], [], scheme);
  }
});

test('the keyboard is enough', async () => {
  const { page, wrong } = await visit(browser, at);
  await live(page);
  await admits(page);
  const reached = [];
  for (let i = 0; i < 60 && reached.at(-1) !== 'BODY'; i++) {
    await page.keyboard.press('Tab');
    reached.push(
      await page.evaluate(() => {
        const on = document.activeElement;
        const outline = getComputedStyle(on);
        if (
          on !== document.body &&
          (outline.outlineStyle === 'none' || outline.outlineWidth === '0px')
        ) {
          return `${on.outerHTML} does not show that it is focused`;
        }
        return on === document.body
          ? 'BODY'
          : (on.getAttribute('aria-label') ?? (on.textContent.trim() || on.id));
      }),
    );
  }
  const all = reached.join('\n');
  assert.doesNotMatch(all, /does not show/);
  for (const name of [
    'Skip to the content',
    'account account=42',
    'Show',
    'Cut for 10 s eu-west',
  ]) {
    assert.ok(all.includes(name), `${name} is not reached:\n${all}`);
  }
  await page.getByRole('textbox', { name: 'account' }).focus();
  await page.keyboard.type('7');
  await page.keyboard.press('Enter');
  await until(
    'the bucket of the form is shown',
    10,
    async () => (await text(page, 'h1')) === 'account account=7',
  );
  assert.equal(
    await page.evaluate(() => document.activeElement.tagName),
    'H1',
    'the focus is on the heading',
  );
  assert.deepEqual(await wrong(), []);
  await page.close();
});

test('a link is cut and healed', async () => {
  const { page, wrong } = await visit(browser, at);
  await live(page);
  assert.match(await text(page, '#banner'), /This node makes cuts/);
  await page.getByRole('button', { name: 'Cut for 30 s eu-west' }).click();
  await until('the banner says so', 5, async () =>
    /us-east\/n1 is cut off from eu-west for \d+ s more/.test(await text(page, '#banner')),
  );
  await until(
    'the link is degraded',
    20,
    async () => Number(await tile(page, 'Degraded links')) > 0,
  );
  await until('the region is missing', 20, async () =>
    /silent: eu-west/.test(await text(page, '.tiles')),
  );
  await shoot(page, 'console-cut');
  await page.getByRole('button', { name: 'Heal eu-west' }).click();
  await until('the link is whole', 30, async () => (await tile(page, 'Degraded links')) === '0');
  assert.match(await text(page, '#banner'), /This node makes cuts/);
  assert.deepEqual(await wrong(), []);
  await page.close();
});

test('load is made, and a Redis dies', async () => {
  const { page, wrong } = await visit(browser, at);
  await live(page);
  const button = page.getByRole('button', { name: '20 requests a second to ap-south' });
  await button.click();
  await until(
    'the button is pressed',
    10,
    async () => (await button.getAttribute('aria-pressed')) === 'true',
  );
  await page.getByRole('button', { name: 'Kill the Redis of ap-south for 5 seconds' }).click();
  await until('the loss is told', 60, async () =>
    /out of reach|recovering|losses|not ready/.test(
      await page.locator('table', { hasText: 'Journal' }).textContent(),
    ),
  );
  await page.getByRole('button', { name: '0 requests a second to ap-south', exact: true }).click();
  assert.deepEqual(await wrong(), []);
  await page.close();
});

test('a page outlives its node', async () => {
  const port = 20_000 + Math.floor(Math.random() * 10_000); // below those that the system hands out
  let other = await regions(port);
  const { page, wrong } = await visit(browser, `http://${other.at.get('ap-south').admin}/`, {
    expected: ['ERR_CONNECTION_REFUSED', 'ERR_INCOMPLETE_CHUNKED_ENCODING', 'ERR_CONNECTION_RESET'],
  });
  await live(page);
  await other.end();
  await until('the page says that it has no news', 10, async () =>
    /no news/.test(await text(page, '#state')),
  );
  other = await regions(port);
  try {
    await live(page);
    assert.deepEqual(await wrong(), []);
  } finally {
    await page.close();
    await other.end();
  }
});

test('a node with roles asks for a token', async () => {
  const dir = mkdtempSync(`${tmpdir()}/console-`);
  const made = start('token', 'new');
  await until(
    'a token is made',
    10,
    () => /sha256:\w+/.test(made.said.text) && /qt1_\S+/.test(made.said.text),
  );
  const [[token], [hash]] = [
    made.said.text.match(/qt1_[\w-]+/),
    made.said.text.match(/sha256:\w+/),
  ];
  writeFileSync(
    `${dir}/roles.yaml`,
    `callers:\n  - {name: me, roles: [read], tokens: ["${hash}"]}\n`,
    { mode: 0o600 },
  );
  writeFileSync(
    `${dir}/limits.yaml`,
    'version: 1\nregions: {us-east: {weight: 1}}\nlimits:\n' +
      '  - {name: a, domain: api, key: [account], algorithm: fixed_window, limit: 9, window: 1m}\n',
  );
  const any = '127.0.0.1:0';
  const node = start(
    'serve',
    '--region',
    'us-east',
    '--data-dir',
    `${dir}/data`,
    '--policy',
    `${dir}/limits.yaml`,
    '--roles',
    `${dir}/roles.yaml`,
    '--redis-embedded',
    '--bootstrap=alone',
    '--listen-http',
    any,
    '--listen-grpc',
    any,
    '--listen-admin',
    any,
    '--listen-peer',
    any,
    '--listen-gossip',
    any,
  );
  try {
    await until('the node serves', 20, () => node.said.text.includes('"msg":"serving"'));
    const admin = JSON.parse(
      node.said.text.split('\n').find((l) => l.includes('"msg":"serving"')),
    ).admin;
    const { page, wrong } = await visit(browser, `http://${admin}/`, { expected: ['401'] });
    await page.getByLabel('Token').fill('wrong');
    await page.keyboard.press('Enter');
    await until('the token is refused', 10, async () =>
      /the token is that of no caller/.test(await text(page, 'main')),
    );
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await live(page);
    await page.reload();
    await live(page);
    await page.getByRole('button', { name: 'Forget the token' }).click();
    await until(
      'it is asked for again',
      10,
      async () => (await page.getByLabel('Token').count()) === 1,
    );
    assert.deepEqual(await wrong(), []);
    await page.close();
  } finally {
    await node.end();
    rmSync(dir, { recursive: true });
  }
});
