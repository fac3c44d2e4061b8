-- adopt: puts a newer policy epoch in force. An epoch begins with the document's version and a dash; a version goes up
-- only, and two documents of one version are not told apart by it: the second is refused.
-- KEYS: token. ARGV: generation, epoch. Reply: 1 if it is in force now, else 0; and the epoch in force, '' if the token
-- is missing or of another generation.
local found = redis.call('HMGET', KEYS[1], 'generation', 'epoch')
if found[1] ~= ARGV[1] then return {0, ''} end
if found[2] == ARGV[2] then return {1, found[2]} end
local function version(epoch) return tonumber(string.match(epoch, '^(%d+)-') or 0) end
if version(ARGV[2]) <= version(found[2]) then return {0, found[2]} end
redis.call('HSET', KEYS[1], 'epoch', ARGV[2])
return {1, ARGV[2]}
