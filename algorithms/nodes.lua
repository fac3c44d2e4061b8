-- nodes: tells which nodes this store has answered under its generation, and when last. It changes nothing. What a node had
-- before the generation began is part of what that began with.
-- KEYS: token. ARGV: generation. Reply: OK, node and time of each; or UNKNOWN (1): another generation stands there; or
-- CROWDED (9): there are too many.
local found = redis.call('HMGET', KEYS[1], 'generation', 'begun')
if found[1] ~= ARGV[1] then return {1} end
local all, failed = seen(tonumber(found[2]))
if failed then return failed end
table.insert(all, 1, 0)
return all
