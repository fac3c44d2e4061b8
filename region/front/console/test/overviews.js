// Overviews for tests.

const at = (seconds) => new Date(1_700_000_000_000 + seconds * 1000).toISOString();

// node tells of a node at a time in seconds. units has what it admitted and denied by limit.
export const node = (region, name, seconds, units, more = {}) => ({
  region,
  node: name,
  started: 'once',
  at: at(seconds),
  ready: true,
  peers: [],
  epoch: '1-a',
  documents: ['1-a'],
  waiting: [],
  limits: Object.entries(units).map(([limit, [admitted, denied]]) => ({
    limit,
    domain: 'api',
    limit_units: 100,
    admitted_units: admitted,
    denied_units: denied,
  })),
  ...more,
});

export const overview = (seconds, nodes, silent = [], hottest = []) => ({
  region: nodes[0].region,
  node: nodes[0].node,
  at: at(seconds),
  nodes,
  silent,
  hottest,
  chaos: false,
});

// bucket has parts as [region, share, used].
export const bucket = (account, denied, ...parts) => ({
  limit: 'a',
  domain: 'api',
  descriptors: { account },
  limit_units: 100,
  admitted_units: 50,
  denied_units: denied,
  used: parts.reduce((total, [, , used]) => total + used, 0),
  parts: parts.map(([region, share, used]) => ({ region, share, used, free: share - used })),
});
