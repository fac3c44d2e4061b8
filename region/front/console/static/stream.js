// Watches the node: tells each overview, and comes again when the stream ends.

import { parser } from './sse.js';
import { ask, Problem } from './session.js';

const first = 1000; // wait before the second attempt, in milliseconds; it doubles
const longest = 15_000;
const silence = 12_000; // without an event for so long, the stream is taken for dead
const hiddenFor = 300_000; // a page that nobody sees gives its place on the node back

// backoff returns how long to wait before the attempt after n failures, between half and the whole
// of a time that doubles. chance is from 0 to 1.
export function backoff(n, chance) {
  return Math.min(longest, first * 2 ** n) * (0.5 + chance / 2);
}

// watch calls tell.overview(o) for each overview, tell.state(name, detail) when the stream is
// "live", "waiting" (detail: milliseconds and why), "refused" (detail: a Problem) or "hidden". It
// returns a function that connects at once, such as after a token was given.
export function watch(tell) {
  let ending = new AbortController();
  let failures = 0;
  let timer;
  let hidden;

  const again = () => {
    clearTimeout(timer);
    ending.abort();
    ending = new AbortController();
    run(ending);
  };

  async function run(own) {
    let why = 'the stream ended';
    try {
      await read(own, (o) => {
        failures = 0;
        tell.state('live');
        tell.overview(o);
      });
    } catch (err) {
      if (own !== ending) return; // another one runs
      if (err instanceof Problem && (err.status === 401 || err.status === 403)) {
        tell.state('refused', err);
        return;
      }
      why = own.signal.aborted ? 'the node fell silent' : err.message;
    }
    if (own !== ending) return;
    const wait = backoff(failures++, Math.random());
    tell.state('waiting', { wait, why });
    timer = setTimeout(again, wait);
  }

  document.addEventListener('visibilitychange', () => {
    clearTimeout(hidden);
    if (document.hidden) {
      hidden = setTimeout(() => {
        const old = ending;
        ending = null;
        clearTimeout(timer);
        old.abort();
        tell.state('hidden');
      }, hiddenFor);
    } else if (ending === null) {
      ending = new AbortController();
      run(ending);
    }
  });
  run(ending);
  return () => {
    failures = 0;
    if (ending) again();
  };
}

// read reads one stream to its end.
async function read(own, tell) {
  const answer = await ask('/v1/watch', { signal: own.signal });
  const feed = parser((name, data) => {
    if (name === 'overview') tell(JSON.parse(data));
  });
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const dead = setTimeout(() => own.abort(), silence);
    const { value, done } = await reader.read().finally(() => clearTimeout(dead));
    if (done) return;
    feed(value);
  }
}
