-- reset: clears the use of one bucket and nothing else: no row, no mark, no epoch. Use that nobody told of after a loss is
-- use: it is cleared too.
-- KEYS: token, bucket. ARGV: guard, terms. Reply: LOST, now, when, where the bucket must be restored first; else OK, now,
-- the state before.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local s = open(h)
if is_lost(h) then return {LOST, now, h.lost_at} end
local reply = {OK, now}
add_state(reply, #reply, h, s)
s:reset()
s:save()
if h.most then
  h.most = nil
  keep(h, true)
end
return reply
