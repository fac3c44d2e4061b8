-- decide: a list of requests on the same buckets, in order. All buckets of a request are checked, then all
-- are charged; a denial spends nothing anywhere. A shadow bucket never denies.
-- KEYS: token, buckets. ARGV: guard, commit, then per bucket: kind, window, entitlement, shadow; then the costs.
-- Reply: OK, now, per bucket {cell, entitlement, share, next share, used}, per request {admitted, per bucket
-- {remaining, retry}}; retry is 0 where the bucket had room.
local now, lost_at = enter()
if not now then return {lost_at} end
local commit = num() == 1
local open = {}
for i = 1, #KEYS - 1 do
  local kind = kinds[arg()]
  local window, entitlement, shadow = num(), num(), num()
  open[i] = kind.open(KEYS[i + 1], now, lost_at, window, entitlement)
  open[i].kind, open[i].shadow = kind, shadow == 1
end

local answers = {}
while arg_at < #ARGV do
  local cost = num()
  if not (cost >= 1 and cost <= MAX and cost % 1 == 0) then return {IMPLAUSIBLE} end
  local admitted, retry = true, {}
  for i, s in ipairs(open) do
    retry[i] = 0
    if not s.kind.fits(s, cost) then
      retry[i] = s.kind.retry(s, cost)
      admitted = admitted and s.shadow
    end
  end
  answers[#answers + 1] = admitted and 1 or 0
  for i, s in ipairs(open) do
    if admitted and retry[i] == 0 then s.kind.take(s, cost) end
    answers[#answers + 1] = s.kind.remaining(s)
    answers[#answers + 1] = retry[i]
  end
end

local reply = {OK, now}
for _, s in ipairs(open) do
  if commit then s.kind.save(s) end
  for _, v in ipairs({s.cell, s.entitlement, s.share, s.next_share, s.used}) do reply[#reply + 1] = v end
end
for _, v in ipairs(answers) do reply[#reply + 1] = v end
return reply
