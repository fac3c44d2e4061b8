-- recall: what this region has heard from a peer of one bucket, for a peer that lost it. To answer is to fence: from now
-- on rows that the peer wrote under a lower generation are refused. The answer speaks of cells that this region has not
-- forgotten itself: not of those touched by its own last loss, nor of those whose rows weigh no more by its clock.
-- KEYS: token, bucket. ARGV: guard, terms, peer, its generation.
-- Reply: OK, now, time of the last loss here (0: none), then per row: cell, borrowed, regained.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local peer, generation = arg(), num()
open(h)
local floor = tonumber(redis.call('HGET', KEYS[1], 'floor:' .. peer) or 0)
if generation < floor then return {FENCED} end
if generation > floor then redis.call('HSET', KEYS[1], 'floor:' .. peer, int(generation)) end
local loss = h.loss
if loss > 0 and weighs(h, cell_at(h, loss) + 1) <= now then loss = 0 end
local reply = {OK, now, loss}
for cell, rows in pairs(rows_of(h)) do
  local row = rows[peer]
  if row and weighs(h, cell) > now then
    for _, v in ipairs({cell, row.b, row.g}) do reply[#reply + 1] = v end
  end
end
return reply
