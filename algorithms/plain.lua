-- The beginning of decide (see decide.lua): most items are single ones (one cost on one bucket that no other item is about),
-- and most buckets are plain (nothing was lent of them, and the store lost nothing). These are decided here, without the
-- objects that others need; and where there are no others, without making the functions that those need.
-- Reply per single item: PLAIN and the two numbers that the functions in plain return; UNSEEN in place of PLAIN if the bucket is
-- not known to be in the store; FURTHER if it is decided behind.

-- WORK is after how much work an item is left for another call, in about the steps that a script takes: OPENING a bucket
-- without rows, and for each 64 bytes of its rows again; FITTING a cost; FINDING when a denied one fits; or PLAINLY all of that.
local WORK, OPENING, FITTING, FINDING, PLAINLY = 3500, 16, 6, 40, 12
local now, lost_at, lag = enter()
if not now then return {lost_at} end
local commit, remember, repeats = num() == 1, num(), num()
local limits, held, buckets = {}, {}, {}
for i = 1, num() do
  limits[i] = limit(now, lost_at)
  limits[i].shadow = num() == 1
end
local reply, n, work = {now, lag}, 2, 0

-- charge notes what is to be written of a plain bucket when all is decided: the values of the kind's fields (of those that
-- stay as they are false), and whether this is its first charge in the cell.
local keys, of, firsts, values = {}, {}, {}, {{}, {}, {}}
local function charge(t, key, first, one, two, three)
  local i = #keys + 1
  keys[i], of[i], firsts[i] = key, t, first
  values[1][i], values[2][i], values[3][i] = one, two, three
end

-- write_plain writes what was charged.
local function write_plain()
  local ones, twos, threes = values[1], values[2], values[3]
  for i, key in ipairs(keys) do
    local t = of[i]
    if t.kind == 'token_bucket' then
      local level, at, mark = int(ones[i]), int(twos[i]), threes[i]
      if firsts[i] then
        redis.call('HSET', key, 'v', level, 'a', at, 'm', int(mark), 't', t.tick_text, 'w', t.cell_text)
      elseif mark then
        redis.call('HSET', key, 'v', level, 'a', at, 'm', int(mark))
      else
        redis.call('HSET', key, 'v', level, 'a', at)
      end
    elseif not firsts[i] then
      redis.call('HSET', key, 'u', int(ones[i]))
    elseif t.kind == 'fixed_window' then
      redis.call('HSET', key, 'c', t.cell_text, 'u', int(ones[i]))
    else
      redis.call('HSET', key, 'c', t.cell_text, 'u', int(ones[i]), 'p', int(twos[i]))
    end
    if firsts[i] then
      t.expires = t.expires or int(floor_div(weighs(t, t.cell + 1) + fill(t), 1000) + 1 + SLACK)
      redis.call('PEXPIREAT', key, t.expires)
    end
  end
end

-- plain has for a kind the function that decides a cost on a bucket; known is until when the bucket is known to be there. It
-- returns what it read if that has rows, so that the bucket is not plain, and nothing if it takes more to say when the cost fits.
-- Else it returns whether the bucket is known to be there now, and two numbers as they are after that: of a fixed_window what
-- is used in the cell, and after how many us the cost fits, 0 if it was charged. The others were charged: of a
-- sliding_window_counter what is used in the cell, and was in the cell before; of a token_bucket the level and its tick.
local plain = {}

function plain.fixed_window(t, key, known, cost)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or not counted and known > t.now then return v[1] and v end
  local there = counted == t.cell_text
  if there then used = tonumber(v[3]) end
  if not used then return end
  if cost <= t.entitlement - used then
    used = used + cost
    charge(t, key, not there, used)
    return true, used, 0
  end
  return there, used, cost <= t.entitlement and t.ends or -1
end

function plain.sliding_window_counter(t, key, known, cost)
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
  if cost > left - used then return end
  used = used + cost
  charge(t, key, not there, used, before)
  return true, used, before
end

function plain.token_bucket(t, key, known, cost)
  local v = redis.pcall('HMGET', key, 'rows', 'v', 'a', 'm', 't', 'w')
  if v.err or v[1] or not v[3] and known > t.now or t.entitlement <= 0 then return v[1] and v end
  if not t.this_tick then count_ticks(t) end
  local full, now = t.full, t.this_tick
  local level, at, mark, stood = full, t.next_tick, now, false
  if v[3] then
    level, at, mark = tonumber(v[2]), tonumber(v[3]), tonumber(v[4])
    if v[5] ~= t.tick_text or not (level and at and mark) then return end
    if v[6] == t.cell_text then stood = mark end
    if at < now then
      level = level + t.entitlement * (now - at) -- which may not be exact only where it is more than full
      at = now
      if level > full then level, mark = full, now end
    end
    if level > full then level, at, mark = full, t.next_tick, now end
    if level == full and at < t.next_tick then at = t.next_tick end
  end
  level = level - cost * t.ticks
  if level < 0 then return end
  charge(t, key, not stood, level, at, stood ~= mark and mark)
  return true, level, at
end

-- single returns the single item of a place: the limit, key, until when the key is known to be there, cost.
local singles = num()
local singles_at = arg_at
arg_at = arg_at + 3 * singles
local function single(place)
  local at = singles_at + 3 * place
  return limits[tonumber(ARGV[at - 2])], KEYS[place + 1], tonumber(ARGV[at - 1]), tonumber(ARGV[at])
end

-- decide_singles decides what is plain, and returns the places of the others. read has by place what was read of these.
local read = {}
local function decide_singles()
  local further, simply = {}, commit and lost_at == 0
  for place = 1, singles do
    local t, key, known, cost = single(place)
    local decides, there, one, two = plain[t.kind]
    if simply and decides and work < WORK / 2 and cost >= 1 and cost <= MAX and cost % 1 == 0 then
      there, one, two = decides(t, key, known, cost)
    end
    if one then
      reply[n + 1], reply[n + 2], reply[n + 3] = there and PLAIN or UNSEEN, one, two
      n, work = n + 3, work + PLAINLY
    else
      if there then
        work, read[place] = work + #there[1] / 64, there
      end
      n = n + 1
      reply[n], further[#further + 1] = FURTHER, place
    end
  end
  return further
end

local further = decide_singles()
local several = num()
if several == 0 and #further == 0 then
  write_plain()
  return reply
end
