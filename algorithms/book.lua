-- book: charges what a node admitted without the store, by its own meter, once: the node says how much it was of a window
-- in all, and the bucket remembers how much of that it has charged.
-- KEYS: token, bucket. ARGV: guard, terms, node, number of the window, units. Field x: "node window units;" each.
-- Reply: LOST, now, when, where the bucket must be restored first; else OK, now, 1 if no more of it need be booked: it is
-- charged, or counts no more.
local now, lost_at = enter()
if not now then return {lost_at} end
local h = hold_one(KEYS[2], now, lost_at)
if not h then return {CALENDAR, now} end
local node, cell, units = arg(), num(), num()
local s = open(h)
if is_lost(h) then return {LOST, now, h.lost_at} end
local function ends(k) return (h.begins and opens(h, k + 2) or (k + 2) * h.window) + h.guard end
local function counts(k) return ends(k) > now end
if not counts(cell) then return {OK, now, 1} end
local before, list = 0, {}
for n, k, u in string.gmatch(redis.call('HGET', h.key, 'x') or '', '(%S+) (%d+) (%d+);') do
  if n == node and tonumber(k) == cell then
    before = tonumber(u)
  elseif counts(tonumber(k)) then
    list[#list + 1] = n .. ' ' .. k .. ' ' .. u .. ';'
  end
end
if units <= before then return {OK, now, 1} end
if not s:book(cell, units - before) then return {OK, now, 0} end
s:save()
list[#list + 1] = node .. ' ' .. int(cell) .. ' ' .. int(units) .. ';'
redis.call('HSET', h.key, 'x', table.concat(list))
keep(h, false, ends(cell))
return {OK, now, 1}
