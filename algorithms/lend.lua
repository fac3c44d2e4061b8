-- lend: what this region gives a peer of one cell, this one or the next. It first gives back what it borrowed
-- from that peer (this cell only), then lends of its own; each only of what is unspent and beyond what it keeps,
-- and the net lent out stays within the lending cap. The call names the values the rows should reach, so that a
-- repeated call gives nothing twice.
-- KEYS: token, bucket. ARGV: guard, kind, window, entitlement, peer, cell, returned to reach, lent to reach,
-- units kept, lending cap. Reply: OK, now, cell now, row (lent, returned, borrowed, regained), share, used, spare left.
local now, lost_at = enter()
if not now then return {lost_at} end
local kind = kinds[arg()]
local window, entitlement, peer, cell = num(), num(), arg(), num()
local returned, lent, kept, cap = num(), num(), num(), num()
local key = KEYS[2]
local s = kind.open(key, now, lost_at, window, entitlement)
if cell ~= s.cell and cell ~= s.cell + 1 then return {FINISHED, now, s.cell} end
if lost(cell, window, lost_at) then return {RECOVERING, now, s.cell} end

local all, out = rows(key, cell)
local row = all[peer] or {l = 0, r = 0, b = 0, g = 0}
local free = kind.spare(s, cell) - kept
local back = 0
if cell == s.cell then
  back = math.max(math.min(returned - row.r, row.b - row.r, free), 0)
end
local room = math.min(free - back, cap - out)
local more = math.max(math.min(lent - row.l, room), 0)
if back > 0 then raise(key, 'r', cell, peer, row.r, row.r + back) end
if more > 0 then raise(key, 'l', cell, peer, row.l, row.l + more) end
if back + more > 0 then keep(key, s.cell, window, now) end
local share = (cell == s.cell and s.share or s.next_share) - back - more
local used = cell == s.cell and s.used or 0
return {OK, now, s.cell, row.l + more, row.r + back, row.b, row.g, share, used, math.max(room - more, 0)}
