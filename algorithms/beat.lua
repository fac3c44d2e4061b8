-- beat: has the store show its time, and hold it by the mark, also where nobody asks it for anything else.
-- A node whose clock is not believed is told the mark that others were shown: if the store's data are lost, and those others
-- are away, the time must not begin before it. It is noted as an answer, so that the node also knows an older copy of this store.
-- KEYS: token. ARGV: guard. Reply: OK, now, or CLOCK, mark; then node and time of each node that was answered since data were
-- lost, if that can be told, of more than MAX_NODES those that were answered last.
local now, status, mark, node = enter()
if not now and status ~= CLOCK then return {status} end
if not now then redis.call('HSET', KEYS[1], node, int(mark)) end
local reply = now and {OK, now} or {CLOCK, mark}
local all, failed = seen(0)
for i = 1, failed and 0 or math.min(#all, MAX_NODES) do
  reply[#reply + 1], reply[#reply + 2] = all[i][1], all[i][2]
end
-- Of more than KEPT nodes the token forgets those that were answered longest ago. Nobody is told of them any more.
for i = KEPT + 1, failed and 0 or #all do redis.call('HDEL', KEYS[1], 'seen:' .. all[i][1]) end
return reply
