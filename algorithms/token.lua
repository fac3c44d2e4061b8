-- Prelude of every script. KEYS[1] is the token of the store: who opened it, for which documents, in which layout the scripts
-- write, the high-water mark of its time, and for each node the latest time that it was answered with (seen:NODE). ARGV begins with the guard: generation,
-- epoch, the node's clock (us), the largest clock difference believed (us), the node, and the latest time that it had from
-- this store (us). A script that finds another token changes nothing. One that finds the node answered with less than it had
-- has found an older copy of the store, whoever has asked it since: it notes that (older), and nobody is answered any more
-- before another generation is opened.
local OK, UNKNOWN, CLOCK, FINISHED, FENCED, IMPLAUSIBLE, RECOVERING, LOST, EARLY, CROWDED, UNREADABLE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
local LATER, CALENDAR, PLAIN, UNSEEN, FURTHER = 11, 12, 13, 14, 15 -- all but CALENDAR of the decide script alone
local SLACK = 1000 -- ms by which a key outlives its use, as KeySlack says
local BEGINS = 7 -- periods of a calendar that a call names by when they begin
local MAX = 2251799813685248 -- 2^51, the largest unit count and time that arithmetic below 2^52 allows

local arg_at = 0
local function arg()
  arg_at = arg_at + 1
  return ARGV[arg_at]
end
local function num()
  return tonumber(arg())
end

-- int writes a whole number with all its digits; '..' would keep 14 of them.
local function int(x)
  return string.format('%d', x)
end

-- portion returns a part of units, in millionths, rounded down. Units that are not above 0 stay as they are. No product is
-- above 2^51.
local WHOLE = 1000000
local function portion(units, part)
  if part >= WHOLE or units <= 0 then return units end
  local rest = units % WHOLE
  local more = rest * part
  return (units - rest) / WHOLE * part + (more - more % WHOLE) / WHOLE
end

-- enter checks the guard and returns the store's time in microseconds, held by its high-water mark so that
-- a clock stepping back cannot reopen a finished cell, and the time at which this generation was opened
-- after a loss (0: nothing was lost), and how far the clock is behind that time. On failure it returns nil and the status to answer;
-- with CLOCK also the mark, and whom it refused.
local function enter()
  local generation, epoch, clock, step, node, seen = arg(), arg(), num(), num(), 'seen:' .. arg(), num()
  local token = redis.call('HMGET', KEYS[1], 'generation', 'epoch', 'mark', 'lost_at', node, 'begun', 'older')
  local mark, answered = tonumber(token[3] or 0), math.max(tonumber(token[5] or 0), tonumber(token[6] or 0))
  if token[1] ~= generation then return nil, UNKNOWN end
  if answered < seen then redis.call('HSET', KEYS[1], 'older', 1) end
  if answered < seen or token[7] or token[2] ~= epoch then return nil, UNKNOWN end
  local t = redis.call('TIME')
  local now = tonumber(t[1]) * 1000000 + tonumber(t[2])
  if now - clock > step or clock - now > step then
    return nil, CLOCK, mark, node
  end
  local lag = 0
  if now < mark then lag = mark - now + 1 end -- each answer is later than the one before: an older copy shows by that, too
  local at = int(now + lag)
  redis.call('HSET', KEYS[1], 'mark', at, node, at)
  return now + lag, tonumber(token[4] or 0), lag
end
