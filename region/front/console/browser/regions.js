// Three regions to look at, by quotad dev, with a load of a few requests a second.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';

const binary = process.env.QUOTAD;

// start starts quotad with arguments, and returns its process, what it says, and how to end it.
export function start(...args) {
  const child = spawn(binary, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = { text: '' };
  for (const pipe of [child.stdout, child.stderr])
    pipe.on('data', (more) => {
      said.text += more;
    });
  const gone = once(child, 'exit');
  return {
    child,
    said,
    end: async () => {
      child.kill('SIGTERM');
      await gone;
    },
  };
}

// until waits for a condition, for at most so many seconds.
export async function until(what, seconds, holds) {
  for (const end = Date.now() + seconds * 1000; Date.now() < end; ) {
    if (await holds()) return;
    await sleep(100);
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}

// regions starts three regions. port is that of the first one, 0 for any.
export async function regions(port = 0) {
  const node = start(
    'dev',
    '--port',
    String(port),
    '--policy',
    `${import.meta.dirname}/limits.yaml`,
  );
  const row = /([a-z-]+) +HTTP (\S+) +gRPC \S+ +admin (\S+)/g;
  await until('quotad dev says where it listens', 30, () => node.said.text.includes('Console: '));
  const at = new Map(
    [...node.said.text.matchAll(row)].map(([, name, http, admin]) => [name, { http, admin }]),
  );
  if (at.size !== 3) throw new Error(`quotad dev: ${node.said.text}`);
  return { ...node, at };
}

// load sends requests until it is ended: one account asks for more in us-east than the world has,
// others for little.
export function load(at) {
  const send = (region, domain, descriptors) =>
    fetch(`http://${at.get(region).http}/v1/check`, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ domain, descriptors }),
    })
      .then((r) => r.arrayBuffer())
      .catch(() => {}); // a region that is down is seen in the console
  const timers = [
    setInterval(() => send('us-east', 'api', { account: '42' }), 80),
    setInterval(() => send('eu-west', 'api', { account: '42' }), 400),
    setInterval(() => send('ap-south', 'api', { account: '7' }), 300),
    setInterval(() => send('eu-west', 'web', { user: 'ann' }), 600),
  ];
  return () => timers.forEach(clearInterval);
}
