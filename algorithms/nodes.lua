-- nodes: tells which nodes this store has answered under its generation, and when last. It changes nothing. What a node had
-- before the generation began is part of what that began with.
-- KEYS: token. ARGV: generation, the most nodes to tell. Reply: OK, node and time of each; or UNKNOWN (1): another generation
-- stands there; or CROWDED (9): there are more.
local found = redis.call('HMGET', KEYS[1], 'generation', 'begun')
if found[1] ~= ARGV[1] then return {1} end
local reply = {0}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if string.sub(field, 1, 5) == 'seen:' then
    local at = redis.call('HGET', KEYS[1], field)
    if tonumber(at) > tonumber(found[2]) then
      if #reply > 2 * tonumber(ARGV[2]) then return {9} end
      reply[#reply + 1], reply[#reply + 2] = string.sub(field, 6), at
    end
  end
end
return reply
