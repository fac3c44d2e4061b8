-- decide: items in order, each a list of requests on the same buckets, in order. All buckets of a request are checked,
-- then all are charged; a denial spends nothing anywhere. A shadow limit never denies; an alternative limit does if all
-- alternative limits of the request do. One that is charged always does not, and is charged whatever the others say. A cost of 0
-- asks whether a unit fits, and charges nothing; such a limit takes part in the denial also if it is charged always. A bucket
-- stands once in the call, however many items are about it, and each finds what those before it left. What lean.lua decides it
-- writes at once; of the others nothing is written before all are decided. An item that cannot be decided says why, and the
-- others are decided all the same. A request may have a part, in millionths, of the rights that each of its buckets has (WHOLE:
-- all): it fits if it and all use together do, and a charge does not heed it. An item with a request of its own may be remembered under a key, so that the request is
-- charged once if it is sent again, so many times: beyond them it is decided as one without a key, and what is remembered stays.
-- The simple items come first: of one cost, or of one several times, on buckets that no other item is about.
-- KEYS: token, the buckets of the simple items, the other buckets, the keys to remember items under, in the order of those.
-- ARGV: guard, commit, ms to remember for, how often to answer what is remembered; number of limits, per limit: terms, MODE,
-- how much may be owed of one that is charged always; number of simple items, and these as lean.lua says; number of other
-- buckets, per bucket: the place of its limit, until when it is known to be there; per item: 1 if it is to be remembered, number
-- of buckets, their places, number of costs, costs; the number of costs is -1 of one request with a cost for each of its buckets.
-- The number of buckets is below zero where requests have parts: then these follow, of each request one for each bucket.
-- Redis serves nobody else meanwhile: when a call has done much work, the items that are left are not answered, and come
-- with another call. Its first item always is.
-- Reply: now, how far the clock is behind it; per simple item what lean.lua says; then per simple item that it left, and per
-- other item: LATER (the last such are left out); or LOST, now, when, and the place in the item of a bucket that must be restored
-- first; or UNREADABLE and what Redis says; or IMPLAUSIBLE; else OK, now, 1 if it is repeated or 2 if it was too often, per
-- request {admitted, per bucket {remaining, retry, delay}}, per bucket its state. Retry is 0 where the bucket had room. Of a
-- limit that is charged always delay is what did not fit of the cost. Else retry, delay and reset count from what the clock
-- shows, which after a step back is behind the mark.
-- lean.lua comes first: it reads the call's beginning and decides the simple items on plain buckets.
local COSTS = 64 -- requests of one item
local limits, held, buckets, items_at = {}, {}, {}, arg_at
arg_at = limits_at
for i = 1, num() do
  limits[i] = limit(now, lost_at)
  limits[i].mode, limits[i].most_owed = num(), num()
end
arg_at = items_at
for i = simple_buckets + 1, simple_buckets + several do held[i] = hold(limits[num()], KEYS[i + 1], num()) end

local function fail(status, why)
  n = n + 1
  reply[n] = status
  if why then
    n = n + 1
    reply[n] = type(why) == 'table' and why.err or tostring(why)
  end
end

-- remembered has by key what is remembered (false: nothing), writes what is to be.
local remembered, writes = {}, {}

-- repeated answers an item that is remembered, and says whether it did; again is whether it was so too often.
local function repeated(key)
  local before = remembered[key]
  if before == nil then before = redis.call('GET', key) end
  remembered[key] = before
  if not before then return false, false end
  local begins, times = n, 0
  for v in string.gmatch(before, '%S+') do
    n = n + 1
    reply[n] = tonumber(v)
  end
  times = reply[begins + 3] -- it is answered now, this time among them
  if times > repeats then
    for i = begins + 1, n do reply[i] = nil end
    n = begins
    return false, true
  end
  if commit then
    remembered[key] = string.gsub(before, '^(%S+ %S+) %S+', '%1 ' .. int(times + 1))
    writes[key] = writes[key] or 'kept'
  end
  reply[begins + 3] = 1
  return true
end

-- crowd returns how much work a bucket is, beside one without rows. Of a fixed_window or token_bucket the rows are fetched, but
-- not read: what they come to stands before them.
local BYTES = {fixed_window = 1024, token_bucket = 1024}
local function crowd(h) return 1 + math.floor(#(h.text or '') / (BYTES[h.kind] or 64)) end

-- request decides one cost on the buckets of an item, or one for each of them, and says whether it is charged; retry is used
-- for each. A cost of 0 fits as one of 1. Its parts stand behind a place in a list of them.
local retry = {}
local function request(places, cost, each, parts, parts_at)
  local admitted, charged, alternatives, left = true, false, 0, 0
  for i, place in ipairs(places) do
    local s, mode, part = buckets[place], held[place].mode, parts and parts[parts_at + i] or WHOLE
    if each then cost = each[i] end
    local fitting = math.max(cost, 1)
    retry[i] = 0
    if mode == ALTERNATIVE then alternatives, left = alternatives + 1, left + 1 end
    if (mode ~= ALWAYS or cost == 0) and not s:fits(fitting, part) then
      local all = s.retries or {} -- by part and cost, until something is charged
      local known = all[part] or {}
      s.retries, all[part] = all, known
      if not known[fitting] then
        known[fitting] = s:retry(fitting, part)
        work = work + FINDING * crowd(held[place])
      end
      retry[i] = known[fitting]
      if mode == ALTERNATIVE then left = left - 1 else admitted = admitted and mode == SHADOW end
    end
  end
  if alternatives > 0 and left == 0 then admitted = false end
  n = n + 1
  reply[n], work = admitted and 1 or 0, work + FITTING * #places
  for i, place in ipairs(places) do
    local h, s, wait, delay, taken = held[place], buckets[place], retry[i], 0, true
    if each then cost = each[i] end
    if cost == 0 then
      taken = false
    elseif h.mode == ALWAYS then
      delay, charged = math.max(cost - s:free(), 0), true -- what it owes
      taken = not s:charge(cost, h.most_owed)
      if delay > 0 then wait, work = s:retry(1, WHOLE), work + FINDING * crowd(h) end
    elseif admitted and wait == 0 then
      delay = s:take(cost)
      if delay > 0 then delay = delay + lag end
    else
      taken = false
    end
    if taken then s.retries, h.charged = false, commit end
    reply[n + 1], reply[n + 2], reply[n + 3] = s:free(), wait > 0 and wait + lag or wait, delay
    n = n + 3
  end
  return admitted or charged
end

-- opened opens the buckets of an item, and says whether it can be decided.
local function opened(places)
  for i, place in ipairs(places) do
    if not buckets[place] then
      buckets[place] = open(held[place])
      held[place].charged = commit and buckets[place].dirty -- it caught up under another entitlement
      work = work + OPENING * crowd(held[place])
    end
    if is_lost(held[place]) then
      reply[n + 1], reply[n + 2], reply[n + 3], reply[n + 4] = LOST, now, held[place].lost_at, i
      n = n + 4
      return false
    end
  end
  return true
end

local function plausible(places, costs, key, each, parts)
  for _, place in ipairs(places) do
    if held[place].mode == ALWAYS and not buckets[place].charge then return false end -- a queue's turns are promises
  end
  if key and (each or #costs ~= 1) or #costs > COSTS then return false end -- one answer cannot be that of several
  for _, cost in ipairs(costs) do
    if not (cost >= (each and 0 or 1) and cost <= MAX and cost % 1 == 0) then return false end
  end
  for _, part in ipairs(parts or {}) do
    if not (part >= 1 and part <= WHOLE and part % 1 == 0) then return false end
  end
  return true
end

-- item decides an item. each says that the costs are those of one request on its buckets. parts are those of all requests, nil:
-- WHOLE.
local function item(key, places, costs, each, parts)
  local before, too_often = n, false
  if key then
    local done
    done, too_often = repeated(key)
    if done then return end
  end
  if not opened(places) then return end
  if not plausible(places, costs, key, each, parts) then return fail(IMPLAUSIBLE) end
  reply[n + 1], reply[n + 2], reply[n + 3] = OK, now, too_often and 2 or 0
  n = n + 3
  local charged = false
  if each then
    request(places, nil, costs, parts, 0)
  else
    for i, cost in ipairs(costs) do charged = request(places, cost, nil, parts, (i - 1) * #places) end
  end
  for _, place in ipairs(places) do
    local reset = n + RESET
    n = add_state(reply, n, held[place], buckets[place])
    if lag > 0 and reply[reset] > 0 then reply[reset] = reply[reset] + lag end
  end
  if key and not too_often and commit and charged then
    local text = {}
    for i = before + 1, n do text[#text + 1] = int(reply[i]) end
    text[3] = '1'
    remembered[key], writes[key] = table.concat(text, ' '), 'new'
  end
end

-- read_list reads a list of so many numbers from the arguments, into one that was used before.
local function read_list(list, count)
  for i = 1, count do list[i] = num() end
  for i = #list, count + 1, -1 do list[i] = nil end
end

-- guarded decides an item, or answers why it cannot be decided.
local function guarded(key, places, costs, each, parts)
  local before = n
  local fine, why = pcall(item, key, places, costs, each, parts)
  if not fine then
    for i = before + 1, n do reply[i] = nil end
    n = before
    fail(UNREADABLE, why)
  end
end

-- decide reads the items one by one, decides them, and writes what they changed. (Not here: after a pcall that fails, the
-- embedded Redis shows a chunk other values of its variables than the functions that it made.)
local function decide()
  for i, item_at in ipairs(further) do
    if i == 1 or work < WORK then
      local at, place = item_at[1], item_at[2]
      local count, cost, times, places, costs = tonumber(ARGV[at + 1]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), {}, {}
      local about, parts = at + 2, nil
      if count < 0 then
        cost, times, about = tonumber(ARGV[at + 2]), 1, at + 3
      elseif times < 0 then
        times, parts = -times, {}
        for i = 1, times do parts[i] = tonumber(ARGV[at + 6]) end
      end
      for i = 1, math.max(-count, 1) do
        held[place] = hold(limits[tonumber(ARGV[about + 2 * i - 2])], KEYS[place + 1], tonumber(ARGV[about + 2 * i - 1]))
        places[i] = place
        held[place].read = read[place]
        place = place + 1
      end
      for i = 1, times do costs[i] = cost end
      guarded(nil, places, costs, false, parts)
    else
      fail(LATER)
    end
  end
  local next_key, places, costs, parts = simple_buckets + several + 1, {}, {}, {}
  while arg_at < #ARGV and work < WORK do
    local key = nil
    if num() == 1 then
      next_key = next_key + 1
      key = KEYS[next_key]
    end
    local count = num()
    read_list(places, math.abs(count))
    local requests = num()
    read_list(costs, requests >= 0 and requests or #places)
    if count < 0 then read_list(parts, (requests >= 0 and requests or 1) * #places) end
    guarded(key, places, costs, requests < 0, count < 0 and parts or nil)
  end
  if commit then
    for i = 1, simple_buckets + several do
      if buckets[i] then buckets[i]:save() end
    end
  end
  for key, how in pairs(writes) do
    if how == 'new' then
      redis.call('SET', key, remembered[key], 'PXAT', int(floor_div(now, 1000) + remember))
    else
      redis.call('SET', key, remembered[key], 'KEEPTTL')
    end
  end
  return reply
end

return decide()
