-- inspect: the state and the ledger of one bucket; changes nothing.
-- KEYS: token, bucket. ARGV: guard, terms.
-- Reply: OK, now, state, then per row: cell, peer, lent, returned, borrowed, regained, burst lent, burst borrowed.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold(KEYS[2], now, lost_at)
local reply = {OK, now}
add_state(reply, h, open(h))
for cell, rows in pairs(h.rows) do
  if weighs(h, cell) > now then
    for peer, row in pairs(rows) do
      for _, v in ipairs({cell, peer, row.l, row.r, row.b, row.g, row.y, row.z}) do reply[#reply + 1] = v end
    end
  end
end
return reply
