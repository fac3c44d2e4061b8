-- credit: what a peer says it gave this region of one cell; the rows keep the maximum, so loss, duplication and
-- reordering of messages are harmless. A finished cell is ignored, and so is burst of any cell but this one. The token
-- keeps the highest generation heard of each peer; rows of a lower one are refused.
-- KEYS: token, bucket. ARGV: guard, terms, peer, its generation, cell, lent, returned, the most that the peer may have
-- lent us, net, burst, the most of that, the peer's store time when it said so.
-- Reply: LOST, now, when, where the bucket must be restored first; else OK, now, state, row (lent, returned, borrowed, regained, burst lent, burst borrowed).
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local peer, generation, cell, to_borrow, returned, most = arg(), num(), num(), num(), num(), num()
local burst, most_burst, at = num(), num(), num()
local s = open(h)
local function refuse(status)
  local reply = {status, now}
  add_state(reply, #reply, h, s)
  return reply
end
local floor = tonumber(redis.call('HGET', KEYS[1], 'floor:' .. peer) or 0)
if generation < floor then return refuse(FENCED) end
if generation > floor then redis.call('HSET', KEYS[1], 'floor:' .. peer, int(generation)) end
if is_lost(h) then return {LOST, now, h.lost_at} end
if movable(h, cell) ~= OK then return refuse(movable(h, cell)) end
-- What this region returned to the peer before the loss is not known, and would be credited once more.
if h.unknown[peer] and unsure(h, cell) then return refuse(RECOVERING) end
-- What the peer gave up within its cell is ours from that point of our own on. Else, where our clock is behind, both would have
-- a rate for the time between, in every cell; and what had faded there when it was lent would still weigh here.
if h.kind ~= 'fixed_window' and at > cell * h.length and now < at then return refuse(EARLY) end
local row = row_of(h, cell, peer)
if returned > row.l or to_borrow - row.r > most or burst > most_burst then return refuse(IMPLAUSIBLE) end
if is_full(h, cell, peer) then return refuse(CROWDED) end

local b, g, z = math.max(row.b, to_borrow), math.max(row.g, returned), row.z
-- While it is not known what some peers were lent, all that may be counts as lent: nothing of that comes back.
if unsure(h, cell) then g = row.g end
if cell == h.cell then z = math.max(row.z, burst) end
if b > row.b or g > row.g or z > row.z then
  s:settle(z - row.z)
  s:save()
  row.b, row.g, row.z = b, g, z
  local rows = rows_of(h)
  rows[cell] = rows[cell] or {}
  rows[cell][peer] = row
  keep(h, cell)
  s = open(h)
end
local reply = {OK, now}
add_state(reply, #reply, h, s)
for _, v in ipairs({row.l, row.r, row.b, row.g, row.y, row.z}) do reply[#reply + 1] = v end
return reply
