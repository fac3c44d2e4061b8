-- The beginning of decide (see decide.lua). Most items are simple ones: one cost, or the same cost several times on one bucket,
-- to be charged, on buckets that no other item is about. And most buckets are plain: nothing was lent of them, and the store
-- lost nothing. Simple items on plain buckets that all have room are decided here, without the objects that others need; and
-- where there are no others, without making the functions that those need.
-- Reply per simple item: FURTHER if it is decided behind; else for each of its buckets PLAIN and the two numbers that the
-- functions in plain return; UNSEEN in place of PLAIN if the bucket is not known to be in the store.

-- WORK is after how much work an item is left for another call, in about the steps that a script takes: OPENING a bucket
-- without rows, and for each 64 bytes of its rows again; FITTING a cost; FINDING when a denied one fits; or PLAINLY all of that.
local WORK, OPENING, FITTING, FINDING, PLAINLY = 3500, 16, 6, 40, 12
local now, lost_at, lag = enter()
if not now then return {lost_at} end
local commit, remember, repeats = num() == 1, num(), num()
local limits, held, buckets = {}, {}, {}
for i = 1, num() do
  limits[i] = limit(now, lost_at)
  if not limits[i] then return {CALENDAR, now} end
  limits[i].mode = num()
end
local reply, n, work = {now, lag}, 2, 0

-- charge notes what is to be written of a plain bucket when all is decided: the values of the kind's fields, and whether this
-- is its first charge in the cell: true, or what the field w says where another limit keeps it longer. A mark that stays as it
-- is is false.
local keys, of, firsts, values = {}, {}, {}, {{}, {}, {}}
local function charge(t, key, one, two, first, mark)
  local i = #keys + 1
  keys[i], of[i], firsts[i] = key, t, first
  values[1][i], values[2][i], values[3][i] = one, two, mark
end

-- write_plain writes what was charged.
local function write_plain()
  local ones, twos, threes = values[1], values[2], values[3]
  for i, key in ipairs(keys) do
    local t, first = of[i], firsts[i]
    if t.kind == 'token_bucket' then
      local level, at, mark = int(ones[i]), int(twos[i]), threes[i]
      if first then
        redis.call('HSET', key, 'v', level, 'a', at, 'm', int(mark), 't', t.tick_text, 'w',
          first == true and t.useful_text or first, 'e', t.rate_text)
      elseif mark then
        redis.call('HSET', key, 'v', level, 'a', at, 'm', int(mark))
      else
        redis.call('HSET', key, 'v', level, 'a', at)
      end
    elseif not first then
      redis.call('HSET', key, 'u', int(ones[i]))
    elseif t.kind == 'fixed_window' then
      redis.call('HSET', key, 'c', t.cell_text, 'u', int(ones[i]))
    else
      redis.call('HSET', key, 'c', t.cell_text, 'u', int(ones[i]), 'p', int(twos[i]))
    end
    if first == true then
      t.expires = t.expires or ending(useful(t))
      redis.call('PEXPIREAT', key, t.expires)
    end
  end
end

-- plain has for a kind the function that decides requests of one cost each, and of a sum, on a bucket; known is until when the
-- bucket is known to be there. It returns what it read if that has rows, so that the bucket is not plain, and nothing if it takes
-- more to say which of them fit, and when. Else it returns whether the bucket is known to be there now, and two numbers as they
-- are when the sum is charged: of a fixed_window what is used in the cell, and 0, or after how many us the cost fits; of a
-- sliding_window_counter what is used in the cell, and was in the cell before; of a token_bucket the level and its tick. If the
-- sum fits it also returns whether it is the first charge in the cell, and the mark if that changes.
local plain = {}

function plain.fixed_window(t, key, known, cost, sum)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or not counted and known > t.now then return v[1] and v end
  local there = counted == t.cell_text
  if there then used = tonumber(v[3]) end
  if not used or t.begins and counted and tonumber(counted) > t.cell then return end
  if sum <= t.entitlement - used then return true, used + sum, 0, not there end
  if cost <= t.entitlement - used then return end
  return there, used, cost <= t.entitlement and t.ends or -1
end

function plain.sliding_window_counter(t, key, known, _, sum)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u', 'p')
  local counted, used, before = v[2], 0, 0
  if v.err or v[1] or not counted and known > t.now then return v[1] and v end
  local there = counted == t.cell_text
  if there then
    used, before = tonumber(v[3]), tonumber(v[4])
  elseif counted and tonumber(counted) == t.cell - 1 then
    before = tonumber(v[3])
  end
  if not (used and before) then return end
  local left = t.entitlement
  if before > 0 then
    local e = floor_div(t.now - t.cell * t.length, t.tick)
    left = floor_div(left * t.ticks - before * (t.ticks - e), t.ticks)
  end
  if sum > left - used then return end
  return true, used + sum, before, not there
end

function plain.token_bucket(t, key, known, _, sum)
  local v = redis.pcall('HMGET', key, 'rows', 'v', 'a', 'm', 't', 'w', 'e')
  if v.err or v[1] or not v[3] and known > t.now or t.entitlement <= 0 then return v[1] and v end
  if not t.this_tick then count_ticks(t) end
  local full, now = t.full, t.this_tick
  local level, at, mark, stood, first = full, t.next_tick, now, false, true
  if v[3] then
    level, at, mark = tonumber(v[2]), tonumber(v[3]), tonumber(v[4])
    if v[5] ~= t.tick_text or v[7] and v[7] ~= t.rate_text or not (level and at and mark) then return end
    if v[6] == t.useful_text and v[7] then
      stood, first = mark, false
    else
      local till = tonumber(v[6])
      if not till then return end
      if till > t.useful then first = v[6] end
    end
    if at < now then
      level = level + t.entitlement * (now - at) -- which may not be exact only where it is more than full
      at = now
      if level > full then level, mark = full, now end
    end
    if level > full then level, at, mark = full, t.next_tick, now end
    if level == full and at < t.next_tick then at = t.next_tick end
  end
  level = level - sum * t.ticks
  if level < 0 then return end
  return true, level, at, first, stood ~= mark and mark
end

-- Arguments of simple items on one bucket, for a run of those that differ in the bucket alone: how many they are, the place
-- of their limit, until when each is known to be there, the cost, and how many requests of that cost each item is; of an item
-- on several buckets their number below zero, the cost, and per bucket the place of its limit and until when it is known to be
-- there.
local simple = num()
local read = {} -- by place of a bucket what was read of it, where that has rows
local further = {} -- of each item that is decided behind, where its arguments and its buckets begin

-- next_item returns of the item whose arguments begin behind at the number of buckets, the cost, how many requests it is, and
-- where the arguments of its first bucket are.
local function next_item(at)
  local count = tonumber(ARGV[at + 1])
  if count > 0 then return 1, tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), at + 2 end
  return -count, tonumber(ARGV[at + 2]), 1, at + 3
end

-- bucket_at returns the limit of a bucket and until when it is known to be there.
local function bucket_at(at) return limits[tonumber(ARGV[at])], tonumber(ARGV[at + 1]) end

-- decide_one decides an item on one bucket, and says whether it could.
local function decide_one(place, t, known, cost, sum)
  local decides, key = plain[t.kind], KEYS[place + 1]
  if not decides then return false end
  local there, one, two, first, mark = decides(t, key, known, cost, sum)
  if not one then
    read[place] = there
    return false
  end
  if first ~= nil then charge(t, key, one, two, first, mark) end
  reply[n + 1], reply[n + 2], reply[n + 3] = there and PLAIN or UNSEEN, one, two
  n = n + 3
  return true
end

-- decide_several decides an item on several buckets, and says whether it could: if all have room.
local function decide_several(place, at, count, cost)
  local ones, twos, firsts, marks, ts = {}, {}, {}, {}, {}
  for i = 1, count do
    local t, known = bucket_at(at + 2 * i - 2)
    local decides = plain[t.kind]
    if not decides then return false end
    local there, one, two, first, mark = decides(t, KEYS[place + i], known, cost, cost)
    if not one then read[place + i - 1] = there end
    if first == nil then return false end
    ts[i], ones[i], twos[i], firsts[i], marks[i] = t, one, two, first, mark
  end
  for i = 1, count do
    charge(ts[i], KEYS[place + i], ones[i], twos[i], firsts[i], marks[i])
    reply[n + 1], reply[n + 2], reply[n + 3] = PLAIN, ones[i], twos[i]
    n = n + 3
  end
  return true
end

-- decide_simple decides the simple items on plain buckets, and returns how many buckets the simple items have.
local function decide_simple()
  local place, simply = 1, commit and lost_at == 0
  local count, cost, times, at, t, known -- of the items that begin behind arg_at, of which so many are left
  local left = 0
  for _ = 1, simple do
    if left == 0 then
      count, cost, times, at = next_item(arg_at)
      t, known = bucket_at(at)
      left = count == 1 and tonumber(ARGV[arg_at + 1]) or 1
    end
    local done, sum = false, cost * times
    if simply and work < WORK / 2 and cost >= 1 and sum <= MAX and cost % 1 == 0 then
      if count == 1 then done = decide_one(place, t, known, cost, sum) else done = decide_several(place, at, count, cost) end
      work = work + PLAINLY * count
      for i = place, place + count - 1 do
        if read[i] then work = work + #read[i][1] / 64 end
      end
    end
    if not done then
      n = n + 1
      reply[n], further[#further + 1] = FURTHER, {arg_at, place}
    end
    place, left = place + count, left - 1
    if left == 0 then arg_at = arg_at + (count == 1 and 5 or 2 + 2 * count) end
  end
  return place - 1
end

local simple_buckets = decide_simple()
local several = num()
if several == 0 and #further == 0 then
  write_plain()
  return reply
end
