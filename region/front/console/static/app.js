// The page: which view is shown, and the stream that feeds it.

import { el, write, show } from './dom.js';
import { BucketPage } from './bucket.js';
import { parseHash } from './buckets.js';
import { Cuts } from './cuts.js';
import { Play } from './play.js';
import { span } from './format.js';
import { History } from './history.js';
import { forgetToken, setToken, token } from './session.js';
import { watch } from './stream.js';
import { World } from './world.js';

const byId = (id) => document.getElementById(id);
const [main, state, where, forget] = ['main', 'state', 'where', 'forget'].map(byId);

const history = new History();
const world = new World(history, new Cuts(byId('banner')), new Play());
let bucket = null; // the page of a bucket, while one is shown
let refused = false;
let connect = () => {};

// view shows what the address names. It moves the focus to the heading if the address was changed.
function view(changed) {
  if (refused) return;
  bucket?.end();
  const named = parseHash(location.hash);
  bucket = named ? new BucketPage(named) : null;
  main.replaceChildren(bucket ? bucket.element : world.element);
  document.title = named ? `${named.limit} – quotad` : 'quotad';
  if (changed) {
    main.querySelector('h1').focus();
    scrollTo(0, 0);
  }
}

// askToken shows a form for the token instead of the view.
function askToken(problem) {
  refused = true;
  bucket?.end();
  const input = el('input', { id: 'token', type: 'password', required: true, autocomplete: 'off' });
  main.replaceChildren(
    el(
      'form',
      {
        class: 'token',
        on: {
          submit: (event) => {
            event.preventDefault();
            setToken(input.value.trim());
            refused = false;
            view(true);
            connect();
          },
        },
      },
      el('h1', {}, 'Who are you?'),
      el('p', { role: 'alert' }, problem.message),
      el('label', { for: 'token' }, 'Token with the role read'),
      input,
      el('button', { type: 'submit' }, 'Connect'),
      el('p', {}, 'The token stays in this tab, and is sent to this node alone.'),
    ),
  );
  input.focus();
}

function say(name, text) {
  state.className = `state ${name}`;
  write(state, text);
}

const states = {
  live: () => say('live', 'live'),
  waiting: ({ wait, why }) =>
    say('waiting', `no news, again in ${span(Math.ceil(wait / 1000) * 1000)}: ${why}`),
  hidden: () => say('waiting', 'paused while nobody looks'),
  refused: (problem) => {
    say('waiting', 'not allowed');
    askToken(problem);
  },
};

forget.addEventListener('click', () => {
  forgetToken();
  location.reload();
});
addEventListener('hashchange', () => view(true));
view(false);
connect = watch({
  overview: (o) => {
    write(where, `as ${o.region}/${o.node} sees it`);
    show(forget, token() !== '');
    if (history.add(o)) world.update(o);
  },
  state: (name, detail) => states[name](detail),
});
