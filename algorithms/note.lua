-- note: has the token remember a text under a name, and answers what it remembered under it before. Without a text it only
-- answers, whatever the generation.
-- KEYS: token. ARGV: generation, 0 where the store is not open yet; name, text. Reply: 1, else 0 (it was to remember a
-- text, and the token is of another generation); and what was before, '' if nothing.
if ARGV[3] ~= '' and (redis.call('HGET', KEYS[1], 'generation') or '0') ~= ARGV[1] then return {0, ''} end
local before = redis.call('HGET', KEYS[1], ARGV[2]) or ''
if ARGV[3] ~= '' then redis.call('HSET', KEYS[1], ARGV[2], ARGV[3]) end
return {1, before}
