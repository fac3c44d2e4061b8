-- inspect: the ledger of one bucket in this cell and the next; changes nothing.
-- KEYS: token, bucket. ARGV: guard, kind, window, entitlement.
-- Reply: OK, now, cell, used, share, next share, then per row: cell, peer, lent, returned, borrowed, regained.
local now, lost_at = enter()
if not now then return {lost_at} end
local kind = kinds[arg()]
local window, entitlement = num(), num()
local s = kind.open(KEYS[2], now, lost_at, window, entitlement)
local reply = {OK, now, s.cell, s.used, s.share, s.next_share}
for cell = s.cell, s.cell + 1 do
  for peer, row in pairs((rows(KEYS[2], cell))) do
    for _, v in ipairs({cell, peer, row.l, row.r, row.b, row.g}) do reply[#reply + 1] = v end
  end
end
return reply
