-- settle: settles what one decision charged, once, by what was used of it. Of less than the cost the rest is taken back, of more
-- what is above is charged, whatever is left. The answer is remembered until no charge is settled any more.
-- KEYS: token, the key to remember the call under, the key under which the request is remembered, buckets. ARGV:
-- guard, store time of the decision (0: none; what was charged last is taken back, of whichever decisions), cost, what was
-- used, ms of store time until which to remember (0: not at all), then per bucket: terms (kind '' where there is no limit any
-- more), cell, from when on it is not settled (0: no such time), the most that a token_bucket may owe. A request of which
-- nothing was used is forgotten: sent again, it is decided anew.
-- Reply: LOST, now, when, where a bucket must be restored first; else OK, now, repeated, what was used, per bucket {units taken
-- back, why not, units charged, how many of these did not fit}.
local now, lost_at = enter()
if not now then return {lost_at} end
local at, cost, used, remember = num(), num(), num(), num()
if not (cost >= 1 and cost <= MAX and cost % 1 == 0 and used >= 0 and used <= MAX and used % 1 == 0) then return {IMPLAUSIBLE} end
local reply = {OK, now, 1}
local before = remember > 0 and redis.call('GET', KEYS[2])
if before then
  for v in string.gmatch(before, '%S+') do reply[#reply + 1] = tonumber(v) end
  if #reply % 2 == 0 then return {IMPLAUSIBLE} end -- an earlier release gave it back, and says so otherwise
  reply[2] = table.remove(reply, 4)
  return reply
end
reply[3], reply[4] = 0, used
local charges = {}
for i = 4, #KEYS do
  if ARGV[arg_at + 1] == '' then
    arg_at = arg_at + 12
  else
    local h = hold_one(KEYS[i], now, lost_at)
    if not h then return {CALENDAR, now} end
    charges[i] = {s = open(h), cell = num(), ends = num(), most = num()}
    if is_lost(h) then return {LOST, now, h.lost_at} end
  end
end
if used == 0 then
  local remembered = redis.call('GET', KEYS[3])
  if remembered and string.match(remembered, '^%d+ (%d+) ') == int(at) then redis.call('DEL', KEYS[3]) end
end
local text = {int(now), int(used)}
for i = 4, #KEYS do
  local c, back, refusal, more, owed = charges[i], 0, NO_SUCH_LIMIT, 0, 0
  if c then
    local s = c.s
    refusal = NOT_REFUSED
    if at == 0 then
      back, refusal = s:refund(now, s.h.cell, cost, true)
    elseif c.ends > 0 and now >= c.ends then
      refusal = SETTLED_LATE
    elseif used < cost then
      back, refusal = s:refund(at, c.cell, cost - used)
    elseif used > cost and not s.charge then
      refusal = TURN_PROMISED
    elseif used > cost then
      more = used - cost
      owed = math.max(more - math.max(s:free(), 0), 0)
      s:charge(more, c.most)
    end
    s:save()
  end
  for _, n in ipairs({back, refusal, more, owed}) do
    reply[#reply + 1], text[#text + 1] = n, int(n)
  end
end
if remember > 0 then
  redis.call('SET', KEYS[2], table.concat(text, ' '), 'PXAT', int(math.max(remember, floor_div(now, 1000) + SLACK)))
end
return reply
