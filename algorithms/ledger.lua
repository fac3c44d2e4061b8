-- The ledger of one bucket, in the bucket's hash. The field rows holds, for each cell that still weighs and each peer
-- region j, "cell j l r b g y z;", in order of the cells, all cumulative:
--   l lent to j         R[self->j][k], written here      y burst lent to j        Y[self->j][k], written here
--   r returned to j     Q[self->j][k], written here      z burst borrowed from j  Y[j->self][k], as heard from j
--   b borrowed from j   R[j->self][k], as heard from j
--   g regained from j   Q[j->self][k], as heard from j
-- Before them stands for each of the cells, in the same order, what they come to, so that to decide nobody need read them:
-- "@cell in out y z missing bytes;": rights borrowed and lent, burst lent and borrowed, the sum over all peers of the most
-- lent to each in this cell or a later one, and the length of its rows; behind that, if it is above 0, what nodes of this region
-- hold of the cell to assign it to Envoys ("=NODE" stands for a peer then, see assign.lua). Rows of nodes stand anywhere among
-- those of their cell, take no room of the others, and are HOLDERS at most.
-- After a loss "!vanished whole unknown;" stands before all of that: the store time at which the bucket was found deleted, that
-- of the loss after which it was restored, and the peers ("j,j" or "-") of which it is not known what they were lent;
-- that counts as lent, in each cell to a peer of its own ("?cell"). Among the peers, "*base:most" says that not all nodes of
-- this region were heard of what they used before the loss: besides base, which is known, most counts as used.
-- The cells of a bucket are of one length, or periods of a calendar: begins has when some of them begin, from the one before the
-- one before the node's on. Those before that have long begun; those after it are far off.
-- A held bucket is a table with its limit (kind, window, length of a cell, tick, entitlement, burst, guard, and whether
-- it is recovered after a loss), until when it is known to be there, key, now, lost_at (0: nothing is missing), loss (the
-- last, mended or not), the current cell and after how many us it ends, cells[cell] with what its rows come to, and
-- rows[cell][peer] once they are read.

-- floor_div and ceil_div divide exactly by b > 0 and round down and up.
local function floor_div(a, b)
  return (a - a % b) / b
end
local function ceil_div(a, b)
  return floor_div(a + b - 1, b)
end

local nobody = {}
local ASSIGNED, MARK = '=', 61 -- before the name of a node among the peers, and as a byte
local HOLDERS = 64 -- nodes at most that have a row in a cell, beside those with peers
local ADVANCE = 60000000 -- us before a window of fixed_window opens from which on rows of it are moved, as Advance says

-- opens returns when a cell begins.
local function opens(h, cell)
  local begins = h.begins
  if not begins then return cell * h.length end
  return begins[cell - h.first + 1] or (cell < h.first and 0 or MAX)
end

-- limit reads the terms of a limit from the arguments. What a bucket of it does not have itself it has from here: as
-- many buckets are of one limit, what follows from the terms and the time is worked out once. It returns nothing if
-- the cells are periods of a calendar and the time is in none of the three in the midst of those that the call names.
local function limit(now, lost_at)
  local t = {now = now, lost_at = lost_at, kind = arg(), window = num(), length = num(), tick = num(), entitlement = num(),
    burst = num(), guard = num(), recovered = num() == 1,
    loss = lost_at, vanished = 0, whole = 0, unknown = nobody, cells = nobody, last = -1}
  assert(t.window > 0 and t.tick > 0, 'terms without a window or a tick')
  if t.length > 0 then
    t.cell = floor_div(now, t.length)
  else
    local begins, at = {}, 0
    t.first, t.begins = num(), begins
    for i = 1, BEGINS do
      begins[i] = num()
      if begins[i] <= now then at = i end
    end
    if at < 2 or at > 4 then return end
    t.cell = t.first + at - 1
  end
  t.cell_text = int(t.cell)
  t.ends = opens(t, t.cell + 1) - now
  t.ticks = ceil_div(t.window, t.tick)
  t.__index = t
  return t
end

-- hold begins a bucket of a limit; known is until when it is known to be there.
local function hold(t, key, known)
  return setmetatable({key = key, known = known, absent = false, kept = -1, charged = false}, t)
end

-- weighs returns the time until which rows of a cell weigh.
local function weighs(h, cell)
  if h.kind == 'sliding_window_counter' then return (cell + 2) * h.window + h.guard + 2 * (h.tick - 1) end
  if h.kind == 'sliding_window_log' then return (cell + 1) * h.length + h.window + h.guard end
  return opens(h, cell + 1)
end

-- fill returns how long an empty bucket takes to fill at the entitlement, 0 for the other kinds.
local function fill(h)
  if h.burst == 0 or h.entitlement == 0 then return 0 end
  return math.min(ceil_div(h.burst * h.ticks, h.entitlement), floor_div(MAX, h.tick)) * h.tick
end

-- useful returns the time until which a bucket last written in its cell must be remembered, as Terms.Useful says; ending
-- the time at which Redis ends a key of that. It is by its clock, which is never ahead of the mark for long: whoever comes
-- then finds that all of it is over.
local function useful(h) return weighs(h, h.cell + 1) + fill(h) end
local function ending(at) return int(floor_div(at, 1000) + 1 + SLACK) end

-- count_ticks keeps on a limit of a kind with a rate what its terms and the time come to in ticks: the tick that has begun last, the
-- first that is still to begin or begins now, those of a cell, a full bucket, and the longest that a request may wait. And
-- until when its buckets are useful.
local function count_ticks(t)
  t.this_tick, t.next_tick = floor_div(t.now, t.tick), ceil_div(t.now, t.tick)
  t.cell_ticks, t.full = floor_div(t.length, t.tick), t.burst * t.ticks
  t.longest, t.useful = floor_div(fill(t), t.tick), useful(t)
  t.tick_text, t.rate_text, t.useful_text, t.tick_texts = int(t.tick), int(t.entitlement), int(t.useful), {}
end
