-- The beginning of decide (see decide.lua). Most items are simple ones: one cost, or the same cost several times on one bucket,
-- to be charged, on buckets that no other item is about. And most buckets are plain: nothing was lent of them, and the store
-- lost nothing. Simple items on plain buckets that all have room are decided and charged here, one after the other, and so is
-- one cost that a plain fixed_window has no room for. A call that has no others ends here. This part makes few
-- functions, none of which needs many of the values around it: a call for one bucket took longer to make functions than to
-- decide.
-- Reply per simple item: FURTHER if it is decided behind; else for each of its buckets PLAIN, or UNSEEN if it is not known to
-- be in the store, and two numbers, as they are when the sum is charged: of a fixed_window what is used in the cell, and 0, or
-- after how many us the cost fits; of a sliding_window_counter what is used in the cell, and was in the cell before; of a
-- token_bucket the level and its tick.
-- Arguments of simple items on one bucket, for a run of those that differ in the bucket alone: how many they are, the place
-- of their limit, until when each is known to be there, the cost, and how many requests of that cost each item is, below zero
-- if they have a part, which follows; of an item on several buckets their number below zero, the cost, and per bucket the place of its limit and until when it is known to be
-- there.

-- WORK is after how much work an item is left for another call, in about the steps that a script takes: OPENING a bucket
-- without rows, and for each 64 bytes of its rows again, or 1,024 where nobody reads them; FITTING a cost; FINDING when a denied
-- one fits; or PLAINLY all of that.
local WORK, OPENING, FITTING, FINDING, PLAINLY = 3500, 16, 6, 40, 12
local SHADOW, ALTERNATIVE, ALWAYS = 1, 2, 3 -- modes of limits; of the others it is 0
local now, lost_at, lag = enter()
if not now then return {lost_at} end
local commit, remember, repeats, limits_at = num() == 1, num(), num(), arg_at
local reply, n, work = {now, lag}, 2, 0
local read = {} -- by place of a bucket what was read of it, where that has rows
local further = {} -- of each item that is decided behind, where its arguments and its buckets begin
local simple_buckets = 0

-- of_limit reads the terms of a limit that stand behind a place in the arguments, and returns where they end, and what its
-- buckets have in common: when the cell ends, and until when a bucket that is charged in it must be remembered (as Terms.Useful
-- says). A sliding_window_counter has besides the ticks of a window, and of how many of them the cell before still weighs; a
-- token_bucket the level of a full one, the tick that began last and the first that did not. It returns no limit if the cells
-- are periods of a calendar and the time is in none of the three in the midst of those that the call names.
local function of_limit(ARGV, at, now)
  local window, length, tick = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local kind, rate, burst, guard = ARGV[at + 1], tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6]), tonumber(ARGV[at + 7])
  assert(window > 0 and tick > 0, 'terms without a window or a tick')
  local t = {kind = kind, now = now, entitlement = rate, calendar = length == 0, cell = 0, text = '', ends = 0, useful = 0}
  at = at + 8
  if length > 0 then
    t.cell = (now - now % length) / length
    t.ends, t.useful = (t.cell + 1) * length, (t.cell + 2) * length
  else
    local begun = 0
    for k = 1, BEGINS do
      if tonumber(ARGV[at + 1 + k]) <= now then begun = k end
    end
    if begun < 2 or begun > 4 then return at end
    t.cell = tonumber(ARGV[at + 1]) + begun - 1
    t.ends, t.useful = tonumber(ARGV[at + 2 + begun]), tonumber(ARGV[at + 3 + begun])
    at = at + 1 + BEGINS
  end
  t.text = string.format('%d', t.cell)
  if kind == 'sliding_window_counter' then
    local ticks, since = window + tick - 1, now - t.cell * length
    t.ticks = (ticks - ticks % tick) / tick
    t.fading = t.ticks - (since - since % tick) / tick
    t.useful = (t.cell + 3) * window + guard + 2 * (tick - 1)
  elseif kind == 'token_bucket' then
    local ticks = window + tick - 1
    t.ticks = (ticks - ticks % tick) / tick
    t.burst, t.full, t.this = burst, burst * t.ticks, (now - now % tick) / tick
    t.next = t.this * tick < now and t.this + 1 or t.this
    if burst > 0 and rate > 0 then
      local fill = t.full + rate - 1
      t.useful = t.useful + math.min((fill - fill % rate) / rate, (MAX - MAX % tick) / tick) * tick
    end
    t.tick_text, t.rate_text, t.useful_text = ARGV[at - 4], ARGV[at - 3], string.format('%d', t.useful)
  end
  return at, t
end

-- A function for each kind reads a bucket and decides requests of one cost each, and of a sum; part is of the rights that they
-- may use, known is until when the bucket is known to be there, and alone whether the item has no other and its limit may deny. It returns what it read; if the
-- bucket is plain and it can decide, the two numbers; if it has room, whether this is the first charge in the cell (true, or what the field w says where
-- another limit keeps it longer), and the mark if that changes, else false; and whether the bucket is not known to be there.
local function window(t, key, known, cost, sum, part, alone)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or not counted and known > t.now then return v end
  local there = counted == t.text
  if there then used = tonumber(v[3]) end
  if not used or t.calendar and counted and tonumber(counted) > t.cell then return v end
  local may = portion(t.entitlement, part)
  if sum <= may - used then return v, used + sum, 0, not there, false end
  if cost <= may - used or not alone then return v end
  return v, used, cost <= may and t.ends - t.now or -1, nil, false, not there
end

local function counter(t, key, known, _, sum, part)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u', 'p')
  local counted, used, before = v[2], 0, 0
  if v.err or v[1] or not counted and known > t.now then return v end
  local there = counted == t.text
  if there then
    used, before = tonumber(v[3]), tonumber(v[4])
  elseif counted and tonumber(counted) == t.cell - 1 then
    before = tonumber(v[3])
  end
  if not (used and before) then return v end
  local room = portion(t.entitlement, part) * t.ticks - before * t.fading
  if sum > (room - room % t.ticks) / t.ticks - used then return v end
  return v, used + sum, before, not there, false
end

local function tokens(t, key, known, _, sum, part)
  local v = redis.pcall('HMGET', key, 'rows', 'v', 'a', 'm', 't', 'w', 'e')
  if v.err or v[1] or not v[3] and known > t.now or t.entitlement <= 0 then return v end
  local full, now = t.full, t.this
  local level, at, mark, stood, first = full, t.next, now, false, true
  if v[3] then
    local till = tonumber(v[6])
    level, at, mark = tonumber(v[2]), tonumber(v[3]), tonumber(v[4])
    if v[5] ~= t.tick_text or v[7] and v[7] ~= t.rate_text or not (level and at and mark and till) then return v end
    if v[6] == t.useful_text and v[7] then
      stood, first = mark, false
    elseif till > t.useful then
      first = v[6]
    end
    if at < now then
      level = level + t.entitlement * (now - at) -- which may not be exact only where it is more than full
      at = now
      if level > full then level, mark = full, now end
    end
    if level > full then level, at, mark = full, t.next, now end
    if level == full and at < t.next then at = t.next end
  end
  level = level - sum * t.ticks
  if level < (t.burst - portion(t.burst, part)) * t.ticks then return v end
  return v, level, at, first, stood ~= mark and mark
end

-- write writes what an item charges on a bucket.
local function write(t, key, one, two, first, mark)
  local format = string.format
  if not first and t.kind ~= 'token_bucket' then
    redis.call('HSET', key, 'u', format('%d', one))
  elseif t.kind == 'fixed_window' then
    redis.call('HSET', key, 'c', t.text, 'u', format('%d', one))
  elseif t.kind == 'sliding_window_counter' then
    redis.call('HSET', key, 'c', t.text, 'u', format('%d', one), 'p', format('%d', two))
  elseif first then
    redis.call('HSET', key, 'v', format('%d', one), 'a', format('%d', two), 'm', format('%d', mark), 't', t.tick_text,
      'w', first == true and t.useful_text or first, 'e', t.rate_text)
  elseif mark then
    redis.call('HSET', key, 'v', format('%d', one), 'a', format('%d', two), 'm', format('%d', mark))
  else
    redis.call('HSET', key, 'v', format('%d', one), 'a', format('%d', two))
  end
  if first == true then
    t.expires = t.expires or format('%d', (t.useful - t.useful % 1000) / 1000 + 1 + SLACK)
    redis.call('PEXPIREAT', key, t.expires)
  end
end

do
  local ARGV, KEYS = ARGV, KEYS
  local limits, at, decides = {}, arg_at + 1, {fixed_window = window, sliding_window_counter = counter, token_bucket = tokens}
  for i = 1, tonumber(ARGV[at]) do
    at, limits[i] = of_limit(ARGV, at, now)
    if not limits[i] then return {CALENDAR, now} end
    limits[i].denies = tonumber(ARGV[at + 1]) ~= ALWAYS
    at = at + 2
  end
  local ts, ones, twos, firsts, marks = {}, {}, {}, {}, {} -- of each bucket of an item
  local left, place, simply = tonumber(ARGV[at + 1]), 1, commit and lost_at == 0
  at = at + 1
  while left > 0 do
    local begins, count, several, about = at, tonumber(ARGV[at + 1]), 1, at + 2
    local items, cost, times, part = count, tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5]), WHOLE
    if count > 0 and times < 0 then times, part = -times, tonumber(ARGV[at + 6]) end
    if count < 0 then
      items, several, about = 1, -count, at + 3
      cost, times = tonumber(ARGV[at + 2]), 1
    end
    at = about + (count < 0 and 2 * several - 1 or part < WHOLE and 4 or 3)
    local sum = cost * times
    local fine = simply and cost >= 1 and sum <= MAX and cost % 1 == 0 and part >= 1 and part % 1 == 0
    for _ = 1, items do
      local plain, unseen = fine and work < WORK / 2, false
      if plain then work = work + PLAINLY * several end
      for i = 1, plain and several or 0 do
        local t, v, one = limits[tonumber(ARGV[about + 2 * i - 2])]
        if decides[t.kind] then
          v, one, twos[i], firsts[i], marks[i], unseen =
            decides[t.kind](t, KEYS[place + i], tonumber(ARGV[about + 2 * i - 1]), cost, sum,
              part, several == 1 and t.denies)
          if v[1] then
            read[place + i - 1] = v
            work = work + #v[1] / 64
          end
        end
        if not one then
          plain = false
          break
        end
        ts[i], ones[i] = t, one
      end
      if not plain then
        n = n + 1
        reply[n], further[#further + 1] = FURTHER, {begins, place}
      end
      for i = 1, plain and several or 0 do
        reply[n + 1], reply[n + 2], reply[n + 3] = unseen and UNSEEN or PLAIN, ones[i], twos[i]
        n = n + 3
        if firsts[i] ~= nil then write(ts[i], KEYS[place + i], ones[i], twos[i], firsts[i], marks[i]) end
      end
      place = place + several
    end
    left = left - items
  end
  simple_buckets, arg_at = place - 1, at
end
local several = num()
if several == 0 and #further == 0 then return reply end
