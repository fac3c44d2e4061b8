-- note: has the token remember something of a node, and answers what it remembered of it before.
-- KEYS: token. ARGV: generation, node, what to remember. Reply: 1 if it is remembered now, else 0 (the token is missing
-- or of another generation); and what was before, '' if nothing.
if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then return {0, ''} end
local before = redis.call('HGET', KEYS[1], 'node:' .. ARGV[2]) or ''
redis.call('HSET', KEYS[1], 'node:' .. ARGV[2], ARGV[3])
return {1, before}
