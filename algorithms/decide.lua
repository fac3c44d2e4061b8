-- decide: a list of requests on the same buckets, in order. All buckets of a request are checked, then all are
-- charged; a denial spends nothing anywhere. A shadow bucket never denies. A request of its own may be remembered
-- under a key, so that it is charged once if it is sent again, so many times: beyond them it is decided as one
-- without a key, and what is remembered stays.
-- KEYS: token, buckets, the key to remember under. ARGV: guard, commit, ms to remember for (0: no such key), how often
-- to answer what is remembered, number of buckets, then per bucket: terms, shadow; then the costs.
-- Reply: LOST, now, when, and the place of a bucket that must be restored first; else OK, now, 1 if it is repeated or 2 if it was too often, per bucket its state, per request {admitted, per bucket {remaining, retry, delay}}; retry
-- is 0 where the bucket had room. Both count from what the clock shows, which after a step back is behind the mark.
local COSTS = 64 -- requests of one call
local now, lost_at, lag = enter()
if not now then return {lost_at} end
local commit, remember, repeats = num() == 1, num(), num()
local once = remember > 0 and KEYS[#KEYS]
local fresh = 0
if once then
  local before = redis.call('GET', once)
  if before then
    local reply = {}
    for v in string.gmatch(before, '%S+') do reply[#reply + 1] = tonumber(v) end
    local times = reply[3] -- it is answered now, this time among them
    if times <= repeats then
      if commit then
        redis.call('SET', once, (string.gsub(before, '^(%S+ %S+) %S+', '%1 ' .. int(times + 1))), 'KEEPTTL')
      end
      reply[3] = 1
      return reply
    end
    remember, fresh = 0, 2
  end
end

local held, buckets = {}, {}
for i = 1, num() do
  held[i] = hold(KEYS[i + 1], now, lost_at)
  held[i].shadow = num() == 1
  buckets[i] = open(held[i])
  if is_lost(held[i]) then return {LOST, now, held[i].lost_at, i} end
end

if once and #ARGV - arg_at ~= 1 then return {IMPLAUSIBLE} end -- one answer cannot be that of several
if #ARGV - arg_at > COSTS then return {IMPLAUSIBLE} end
local admitted = false
local answers, count, retries = {}, 0, {} -- retries of a bucket by cost, until something is charged to it
for i in ipairs(buckets) do retries[i] = {} end
while arg_at < #ARGV do
  local cost = num()
  if not (cost >= 1 and cost <= MAX and cost % 1 == 0) then return {IMPLAUSIBLE} end
  local retry = {}
  admitted = true
  for i, s in ipairs(buckets) do
    retry[i] = 0
    if not s.fits(cost) then
      retries[i][cost] = retries[i][cost] or s.retry(cost)
      retry[i] = retries[i][cost]
      admitted = admitted and held[i].shadow
    end
  end
  count = count + 1
  answers[count] = admitted and 1 or 0
  for i, s in ipairs(buckets) do
    local delay = 0
    if admitted and retry[i] == 0 then
      delay = s.take(cost)
      retries[i] = {}
    end
    answers[count + 1] = s.free()
    answers[count + 2] = retry[i] > 0 and retry[i] + lag or retry[i]
    answers[count + 3] = delay > 0 and delay + lag or delay
    count = count + 3
  end
end

local reply = {OK, now, fresh}
for i, s in ipairs(buckets) do
  if commit then s.save() end
  add_state(reply, held[i], s)
end
for _, v in ipairs(answers) do reply[#reply + 1] = v end
if remember > 0 and commit and admitted then
  local text = {}
  for i, v in ipairs(reply) do text[i] = int(v) end
  text[3] = '1'
  redis.call('SET', once, table.concat(text, ' '), 'PXAT', int(floor_div(now, 1000) + remember))
end
return reply
