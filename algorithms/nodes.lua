-- nodes: tells which nodes this store has answered under its generation, and when last. It changes nothing. What a node had
-- before the generation began is part of what that began with.
-- KEYS: token. ARGV: generation. Reply: OK, node and time of each; or UNKNOWN (1): another generation stands there; or
-- CROWDED (9): there are more than MAX_NODES.
local found = redis.call('HMGET', KEYS[1], 'generation', 'begun')
if found[1] ~= ARGV[1] then return {1} end
local all, failed = seen(tonumber(found[2]))
if failed then return failed end
if #all > MAX_NODES then return {9} end
local reply = {0}
for _, one in ipairs(all) do reply[#reply + 1], reply[#reply + 2] = one[1], one[2] end
return reply
