-- A held bucket: until when it is kept, what a loss says of it, what rights it has, and what is answered of it.

-- hold_one reads the only bucket of a call from the arguments; nothing if limit returns nothing.
local function hold_one(key, now, lost_at)
  know_rows()
  local t = limit(now, lost_at)
  if t then return hold(t, key, num()) end
end

-- read_rows takes in the field rows, but for the rows themselves.
local function read_rows(h, text)
  if text then
    know_rows()
    return read_sums(h, text)
  end
  if h.cells == nobody then return end -- as it begins
  h.vanished, h.whole, h.unknown, h.loss, h.base, h.most = 0, 0, nobody, h.lost_at, nil, nil
  h.text, h.cells, h.rows, h.holds, h.last = nil, nobody, nil, nil, -1
end

-- keep drops the rows that weigh no more, writes the others if they changed (true, or the one cell whose did), and has
-- the hash outlive its last useful moment, and the time least if that is later. A kind with a rate has in the field w until
-- when it is kept (said: it is written already). That never becomes sooner, whatever its terms have become: nodes may
-- have been told of it.
local function keep(h, changed, least, said)
  if changed or h.text then
    know_rows()
    write_rows(h, changed)
  end
  if h.moves then -- a calendar's: nobody may take a cell whose rows are gone for the current one, see Window.open
    redis.call('HSET', h.key, 'c', h.cell_text, 'u', 0)
    h.moves = false
  end
  h.kept = h.cell
  local ends = math.max(useful(h), least or 0)
  if h.till then
    if ends <= h.till then return end
    h.till = ends
    if not said then redis.call('HSET', h.key, 'w', int(ends)) end
  end
  redis.call('PEXPIREAT', h.key, ending(ends))
end

-- fields returns what is asked for of the bucket's hash. What was read of it before its class was made is used once.
local function fields(h, ...)
  local v = h.read
  if not v then return redis.call('HMGET', h.key, 'rows', ...) end
  h.read = nil
  return v
end

-- cell_at returns the cell that holds a time which is not after now.
function cell_at(h, at)
  local begins = h.begins
  if not begins then return floor_div(at, h.length) end
  for i = BEGINS, 1, -1 do
    if begins[i] <= at then return h.first + i - 1 end
  end
  return h.first - 1
end

-- closed returns the time until which this region holds no rights because its store lost data: what it had then may
-- have concerned the cell of that moment and the next, and counts as fully lent and fully used as long as it weighs.
local function closed(h)
  if h.lost_at == 0 then return 0 end
  return weighs(h, cell_at(h, h.lost_at) + 1)
end

-- is_lost says whether a bucket must be restored before it can be used.
local function is_lost(h) return h.recovered and closed(h) > h.now end

-- unsure says whether it is not known of a cell what some peers were lent before a loss.
local function unsure(h, cell)
  return next(h.unknown) ~= nil and cell <= cell_at(h, h.whole) + 1
end

-- untold returns what counts as used because not all nodes have told what they used before the loss, beyond what is known;
-- until says until when use of before the loss weighs, 0 where all have told.
local function untold(h)
  if not h.most then return 0 end
  return math.max(h.most - h.base, 0)
end
local function untold_until(h)
  if not h.most then return 0 end
  if h.kind == 'sliding_window_log' then return h.whole + h.window end
  local cell = cell_at(h, h.whole)
  if h.kind == 'sliding_window_counter' then cell = cell + 1 end
  return opens(h, cell + 1)
end

-- shut returns the time until which a loss keeps the bucket closed, or use that nobody told of may fill it; 0: it does not.
local function shut(h)
  local till = math.max(closed(h), untold_until(h))
  if till <= h.now then return 0 end
  return till
end

-- is_open says whether rights of a cell are not closed by a loss.
local function is_open(h, cell)
  return opens(h, cell) >= closed(h)
end

-- borrowed returns the rights of a cell held from peers; lent those held with them, and the burst.
local function borrowed(h, cell)
  local sum = h.cells[cell]
  return sum and sum.into or 0
end
local function lent(h, cell)
  local sum = h.cells[cell]
  if not sum then return 0, 0 end
  return sum.out, sum.y
end

-- assigned returns what nodes of this region hold of a cell to assign it to Envoys.
local function assigned(h, cell)
  local sum = h.cells[cell]
  return sum and sum.assigned or 0
end

-- rights returns S of a cell as the rows of that cell alone have it, less what is assigned: what the store has itself.
local function rights(h, cell)
  if h.cells == nobody and h.lost_at == 0 then return h.entitlement end
  if not is_open(h, cell) then return 0 end
  return h.entitlement + borrowed(h, cell) - (lent(h, cell)) - assigned(h, cell)
end

-- there returns the time until which the bucket is known to be in the store, 0 if this call cannot tell: kept is the
-- cell for which it is kept, as far as that was read or done; a bucket that was charged is kept when all is decided.
local function there(h)
  if h.kept ~= h.cell and not h.charged then return 0 end
  if h.last >= 0 or h.begins then return weighs(h, math.max(h.cell, h.last)) + fill(h) end
  local t = getmetatable(h)
  t.there = t.there or weighs(t, t.cell) + fill(t)
  return t.there
end

-- doubt returns the time of a loss before which something happened that is not known and still may weigh: what peers were
-- lent, or what nodes used; 0: none.
local function doubt(h)
  if unsure(h, h.cell) or untold_until(h) > h.now then return h.whole end
  return 0
end

-- add_state writes a bucket's state behind the first n values of a reply, and returns how many there are then: cell,
-- reset, share, next share, used, fading, free, there, doubt, shut. What a loss may hide counts as used.
local RESET = 2 -- the place of reset among them
local function add_state(reply, n, h, s)
  local share, next_share, used, fading, reset = s:state()
  reply[n + 1], reply[n + RESET], reply[n + 3], reply[n + 4] = h.cell, reset, share, next_share
  reply[n + 5], reply[n + 6], reply[n + 7], reply[n + 8] = used, fading, s:free(), there(h)
  if s.owes and s:owes() and h.entitlement > 0 and reply[n + 8] > 0 then -- it is kept until it is full
    reply[n + 8] = math.max(reply[n + 8], h.till, h.charged and math.max(useful(h), h.now + reset) or 0)
  end
  reply[n + 9], reply[n + 10] = 0, 0
  if h.loss > 0 then
    local till = shut(h)
    reply[n + 9], reply[n + 10] = doubt(h), till
    if till - h.now > reset then reply[n + RESET] = till - h.now end
  end
  return n + 10
end

-- movable says whether rows of a cell may be moved: OK, or why not. Those of the next window not before ADVANCE is left of this
-- one: so what two windows have in common is over soon after another document.
local function movable(h, cell)
  if cell ~= h.cell and cell ~= h.cell + 1 then return FINISHED end
  if cell > h.cell and h.kind == 'fixed_window' and opens(h, cell) - h.now > ADVANCE then return FINISHED end
  if not is_open(h, cell) then return RECOVERING end
  return OK
end

-- kinds has for each algorithm, by its name in the policy document, the function that makes its class, when the first bucket
-- of it is opened. The class has a function open, of a held bucket. What that returns has these methods:
--   state()                 share, next share, used, fading, and reset: after how many us the bucket is whole, which is
--                           that nothing used counts any more, if nothing else happens; 0: it is now
--   free()                  units that fit now
--   fits(cost, part)        whether a cost fits into a part of the rights (of a token_bucket, of its capacity), all use counted;
--                           a leaky_bucket has no parts
--   retry(cost, part)       after how many us the cost fits if nothing else happens; -1: never on the entitlement alone
--   take(cost)              charges a cost that fits; returns after how many us its turn has come
--   charge(cost, most)      charges a cost whether it fits or not; a token_bucket then owes so many units at most
--   spare(kept)             rights of the current cell that may be given back, beyond kept units
--   room(cell, peer, kept)  what more of a cell may be lent to a peer, beyond kept units
--   room_burst(kept)        what more burst may be lent, beyond kept tokens
--   settle(tokens)          fixes what has happened so far, before rows change, and adds tokens that came or went
--   refund(at, cell, units) takes back a charge; returns the units, and why not
--   book(cell, units)       charges what was admitted in a window without the store, whether it fits or not; false: the
--                           window has not begun here
--   restore(cell, units, at)  of windows: at least so much was used, as seen at a time in a cell
--   known()                 of windows: what is known to be used that weighs since before the loss of untold
--   reset()
--   save()                  writes what changed; the last that is done with what open returned
-- open sets absent where there is nothing of the bucket in the store.
local kinds = {}
local NOT_REFUSED, NO_LONGER_WEIGHS, TURN_PROMISED, NO_SUCH_LIMIT, SETTLED_LATE = 0, 1, 2, 3, 4
local function zero() return 0 end
local classes = {} -- those that were made

-- open opens a bucket. One that is not there although this node knows that it still weighs was deleted, and is as lost
-- as one of a store that lost everything.
local function open(h)
  local class = classes[h.kind]
  if not class then
    class = kinds[h.kind]()
    classes[h.kind] = class
  end
  local lost_at = h.lost_at
  local s = class.open(h)
  if h.absent and h.known > h.now then
    h.vanished = h.now
    keep(h, true)
    h.lost_at, h.kept = lost_at, -1 -- of a window, who asks knows better than this call until when it is there
    s = class.open(h)
  end
  return s
end
