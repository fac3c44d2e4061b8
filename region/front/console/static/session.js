// What the page asks its node, with the caller's token if there is one. The token stays in this
// tab's sessionStorage, so that a reload need not ask for it. It ends with the tab.

const place = 'quotad-token';

export const token = () => sessionStorage.getItem(place) ?? '';
export const setToken = (text) => sessionStorage.setItem(place, text);
export const forgetToken = () => sessionStorage.removeItem(place);

// Problem is an answer of the node that is not what was asked for.
export class Problem extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// ask makes a request and returns its response. It throws a Problem if the node refuses.
export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = `Bearer ${token()}`;
  const answer = await fetch(path, { ...options, headers, cache: 'no-store', credentials: 'omit' });
  if (answer.ok) return answer;
  let detail = answer.statusText;
  try {
    detail = (await answer.json()).detail || detail;
  } catch {
    /* it is not a problem in JSON */
  }
  throw new Problem(answer.status, detail || `the node answered ${answer.status}`);
}

export const get = async (path, signal) => (await ask(path, { signal })).json();

// post sends JSON and returns the JSON of the answer.
export const post = async (path, body) =>
  (
    await ask(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    })
  ).json();
