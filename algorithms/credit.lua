-- credit: what a peer says it gave this region of one cell; the rows keep the maximum, so loss, duplication and
-- reordering of messages are harmless. A finished cell is ignored. The token keeps the highest generation heard
-- of each peer; rows of a lower one are refused.
-- KEYS: token, bucket. ARGV: guard, kind, window, entitlement, peer, its generation, cell, lent, returned, the most
-- that the peer may have lent us, net.
-- Reply: OK, now, cell now, row (lent, returned, borrowed, regained), share of that cell, used in it.
local now, lost_at = enter()
if not now then return {lost_at} end
local kind = kinds[arg()]
local window, entitlement, peer, generation, cell = num(), num(), arg(), num(), num()
local lent, returned, most = num(), num(), num()
local key = KEYS[2]
local s = kind.open(key, now, lost_at, window, entitlement)
local floor = tonumber(redis.call('HGET', KEYS[1], 'floor:' .. peer) or 0)
if generation < floor then return {FENCED, now, s.cell} end
if generation > floor then redis.call('HSET', KEYS[1], 'floor:' .. peer, int(generation)) end
if cell ~= s.cell and cell ~= s.cell + 1 then return {FINISHED, now, s.cell} end
if lost(cell, window, lost_at) then return {RECOVERING, now, s.cell} end

local row = rows(key, cell)[peer] or {l = 0, r = 0, b = 0, g = 0}
if returned > row.l or lent - row.r > most then return {IMPLAUSIBLE, now, s.cell} end
local share = cell == s.cell and s.share or s.next_share
if lent > row.b then
  raise(key, 'b', cell, peer, row.b, lent)
  share = share + lent - row.b
end
if returned > row.g then
  raise(key, 'g', cell, peer, row.g, returned)
  share = share + returned - row.g
end
keep(key, s.cell, window, now)
local b, g = math.max(row.b, lent), math.max(row.g, returned)
return {OK, now, s.cell, row.l, row.r, b, g, share, cell == s.cell and s.used or 0}
