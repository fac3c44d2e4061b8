// Pages in a real browser, and what goes wrong in them.

import { createRequire } from 'node:module';

const require = createRequire(`${process.env.CONSOLE_TOOLS}/`);
const { chromium } = require('playwright-core');
const axe = require.resolve('axe-core');

export const open = (...flags) =>
  chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', ...flags] });

// visit opens a page that notes everything that is wrong: errors, messages of the policy, and
// requests to any other host. expected are parts of messages that the test brings about.
export async function visit(
  browser,
  url,
  { width = 1440, height = 900, scheme = 'light', expected = [], context = {} } = {},
) {
  const page = await browser.newPage({
    viewport: { width, height },
    colorScheme: scheme,
    ...context,
  });
  const wrong = [];
  const note = (text) => {
    if (!expected.some((part) => text.includes(part))) wrong.push(text);
  };
  page.on('console', (m) => {
    if (['error', 'warning'].includes(m.type())) note(`${m.type()}: ${m.text()}`);
  });
  page.on('pageerror', (err) => note(`not caught: ${err.stack}`));
  page.on('request', (r) => {
    const to = new URL(r.url());
    if (to.host !== new URL(url).host && to.protocol !== 'data:')
      note(`asks another host: ${r.url()}`);
  });
  await page.addInitScript(() => {
    globalThis.refused = [];
    document.addEventListener('securitypolicyviolation', (e) => {
      globalThis.refused.push(`${e.violatedDirective} ${e.blockedURI}`);
    });
  });
  await page.goto(url);
  return {
    page,
    wrong: async () => [...wrong, ...(await page.evaluate(() => globalThis.refused))],
  };
}

// look checks a page that is shown for what a person without a mouse or without eyes needs.
export async function look(browser, url, ready, options) {
  const { page } = await visit(browser, url, { ...options, context: { bypassCSP: true } });
  await ready(page);
  await page.addScriptTag({ path: axe });
  const found = await page.evaluate(async () =>
    (await globalThis.axe.run()).violations.map(
      (v) =>
        `${v.id}: ${v.help}: ${v.nodes
          .map((n) => n.html)
          .slice(0, 3)
          .join(' ')}`,
    ),
  );
  await page.close();
  return found;
}
