-- refund: takes back what one decision charged, once. What was refunded is remembered for as long as it could weigh.
-- KEYS: token, the key to remember the receipt under, the key under which the request is remembered, buckets. ARGV:
-- guard, store time of the decision (0: none; what was charged last is taken back, of whichever decisions), cost, ms of store time until which to remember (0: not at all), then per bucket: terms (kind '' where there is no limit any
-- more), cell. A request that was refunded is forgotten: sent again, it is decided anew.
-- Reply: LOST, now, when, where a bucket must be restored first; else OK, now, repeated, per bucket {units given back, why not}.
local now, lost_at = enter()
if not now then return {lost_at} end
local at, cost, remember = num(), num(), num()
if not (cost >= 1 and cost <= MAX and cost % 1 == 0) then return {IMPLAUSIBLE} end
local reply = {OK, now, 1}
local before = remember > 0 and redis.call('GET', KEYS[2])
if before then
  for v in string.gmatch(before, '%S+') do reply[#reply + 1] = tonumber(v) end
  reply[2] = table.remove(reply, 4)
  return reply
end
reply[3] = 0
local charges = {}
for i = 4, #KEYS do
  if ARGV[arg_at + 1] == '' then
    arg_at = arg_at + 10
  else
    local h = hold_one(KEYS[i], now, lost_at)
    if not h then return {CALENDAR, now} end
    charges[i] = {s = open(h), cell = num()}
    if is_lost(h) then return {LOST, now, h.lost_at} end
  end
end
local remembered = redis.call('GET', KEYS[3])
if remembered and string.match(remembered, '^%d+ (%d+) ') == int(at) then redis.call('DEL', KEYS[3]) end
local text = {int(now)}
for i = 4, #KEYS do
  local units, refusal = 0, NO_SUCH_LIMIT
  if charges[i] then
    local s, cell = charges[i].s, charges[i].cell
    if at == 0 then
      units, refusal = s:refund(now, s.h.cell, cost, true)
    else
      units, refusal = s:refund(at, cell, cost)
    end
    s:save()
  end
  text[#text + 1], text[#text + 2] = int(units), int(refusal)
  reply[#reply + 1], reply[#reply + 2] = units, refusal
end
if remember > 0 then
  redis.call('SET', KEYS[2], table.concat(text, ' '), 'PXAT', int(math.max(remember, floor_div(now, 1000) + SLACK)))
end
return reply
