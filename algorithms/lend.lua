-- lend: what this region gives a peer of one cell, this one or the next. It first gives back what it borrowed from
-- that peer, then lends of its own, then burst (both but the lending for this cell only); each only of what is unspent
-- and beyond what it keeps, and what is lent out stays within the lending cap. The call names the values the rows
-- should reach, so that a repeated call gives nothing twice.
-- KEYS: token, bucket. ARGV: guard, terms, peer, cell, returned to reach, lent to reach, units kept, lending cap, burst
-- to reach, tokens kept, burst cap, least of burst that is lent.
-- Reply: LOST, now, when, where the bucket must be restored first; else OK, now, state, row (lent, returned, borrowed, regained, burst lent, burst borrowed), spare left, of burst.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local peer, cell, returned, to_lend, kept, cap = arg(), num(), num(), num(), num(), num()
local to_burst, kept_burst, cap_burst, least_burst = num(), num(), num(), num()
local s = open(h)
-- What is spent is spent. Of a rate, what is assigned serves a part of what is kept; of a window, it is spent.
if h.kind == 'token_bucket' then kept = kept - assigned(h, cell) end
kept, kept_burst = math.max(kept, 0), math.max(kept_burst, 0)
if is_lost(h) then return {LOST, now, h.lost_at} end
local reply = {movable(h, cell), now}
if reply[1] ~= OK then
  add_state(reply, #reply, h, s)
  return reply
end

local row = row_of(h, cell, peer)
local function change(tokens)
  s:settle(tokens)
  s:save()
  local rows = rows_of(h)
  rows[cell] = rows[cell] or {}
  rows[cell][peer] = row
  keep(h, cell)
  s = open(h)
end

if cell == h.cell then
  local back = math.min(returned - row.r, row.b - row.r, s:spare(kept))
  if back > 0 then
    row.r = row.r + back
    change(0)
  end
end
local out, out_burst = lent(h, cell)
local room, room_burst = math.min(s:room(cell, peer, kept), cap - out), 0
if cell == h.cell then room_burst = math.min(s:room_burst(kept_burst), cap_burst - out_burst) end
if is_full(h, cell, peer) then room, room_burst = 0, 0 end
local more = math.max(math.min(to_lend - row.l, room), 0)
local burst = math.max(math.min(to_burst - row.y, room_burst), 0)
if burst < least_burst then burst = 0 end
if more + burst > 0 then
  row.l, row.y = row.l + more, row.y + burst
  change(-burst)
end
add_state(reply, #reply, h, s)
for _, v in ipairs({row.l, row.r, row.b, row.g, row.y, row.z, math.max(room - more, 0), math.max(room_burst - burst, 0)}) do
  reply[#reply + 1] = v
end
return reply
