-- The beginning of decide (see decide.lua): most items are single ones (one cost on one bucket that no other item is about),
-- and most buckets are plain (nothing was lent of them, and the store lost nothing). These are decided here, without the
-- objects that others need; and where there are no others, without making the functions that those need.
-- Reply per single item: PLAIN, used, and more, as the functions in plain return it; UNSEEN in place of PLAIN if the bucket is
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

-- charge notes what is to be written of a plain bucket when all is decided: what was used in the cell, and in the one
-- before if it is not the cell that stands there (before; false: it is).
local plain_keys, plain_limits, plain_used, plain_before = {}, {}, {}, {}
local function charge(t, key, used, before)
  local i = #plain_keys + 1
  plain_keys[i], plain_limits[i], plain_used[i], plain_before[i] = key, t, used, before
end

-- write_plain writes what was charged.
local function write_plain()
  for i, key in ipairs(plain_keys) do
    local t, before = plain_limits[i], plain_before[i]
    if before == false then
      redis.call('HSET', key, 'u', int(plain_used[i]))
    else
      if t.kind == 'fixed_window' then
        redis.call('HSET', key, 'c', t.cell_text, 'u', int(plain_used[i]))
      else
        redis.call('HSET', key, 'c', t.cell_text, 'u', int(plain_used[i]), 'p', int(before))
      end
      t.expires = t.expires or int(floor_div(weighs(t, t.cell + 1), 1000) + 1 + SLACK)
      redis.call('PEXPIREAT', key, t.expires)
    end
  end
end

-- plain has for a kind the function that decides a cost on a bucket; known is until when the bucket is known to be there. It
-- returns nothing if the bucket is not plain, or if it takes more to say when the cost fits. Else it returns whether the
-- bucket is known to be there now, what is used in the cell after that, and more: of a fixed_window after how many us the
-- cost fits, 0 if it was charged; of a sliding_window_counter, which was charged, what was used in the cell before.
local plain = {}

function plain.fixed_window(t, key, known, cost)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u')
  local counted, used = v[2], 0
  if v.err or v[1] or not counted and known > t.now then return end
  local there = counted == t.cell_text
  if there then used = tonumber(v[3]) end
  if not used then return end
  if cost <= t.entitlement - used then
    used = used + cost
    charge(t, key, used, not there and 0)
    return true, used, 0
  end
  return there, used, cost <= t.entitlement and t.ends or -1
end

function plain.sliding_window_counter(t, key, known, cost)
  local v = redis.pcall('HMGET', key, 'rows', 'c', 'u', 'p')
  local counted, used, before = v[2], 0, 0
  if v.err or v[1] or not counted and known > t.now then return end
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
  charge(t, key, used, not there and before)
  return true, used, before
end

-- single returns the single item of a place: the limit, key, until when the key is known to be there, cost.
local singles = num()
local singles_at = arg_at
arg_at = arg_at + 3 * singles
local function single(place)
  local at = singles_at + 3 * place
  return limits[tonumber(ARGV[at - 2])], KEYS[place + 1], tonumber(ARGV[at - 1]), tonumber(ARGV[at])
end

-- decide_singles decides what is plain, and returns the places of the others.
local function decide_singles()
  local further, simply = {}, commit and lost_at == 0
  for place = 1, singles do
    local t, key, known, cost = single(place)
    local decides, there, used, more = plain[t.kind]
    if simply and decides and cost >= 1 and cost <= MAX and cost % 1 == 0 then
      there, used, more = decides(t, key, known, cost)
    end
    if used then
      reply[n + 1], reply[n + 2], reply[n + 3] = there and PLAIN or UNSEEN, used, more
      n, work = n + 3, work + PLAINLY
    else
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
