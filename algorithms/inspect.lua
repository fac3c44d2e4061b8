-- inspect: the state and the ledger of one bucket; changes nothing.
-- KEYS: token, bucket. ARGV: guard, terms.
-- Reply: OK, now, state, then per row: cell, peer, lent, returned, borrowed, regained, burst lent, burst borrowed.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local reply = {OK, now}
add_state(reply, #reply, h, open(h))
add_rows(reply, h)
return reply
