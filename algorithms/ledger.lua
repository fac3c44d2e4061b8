-- The ledger of one bucket, in the bucket's hash. The field rows holds, for each cell that still weighs and each peer
-- region j, "cell j l r b g y z;", in order of the cells, all cumulative:
--   l lent to j         R[self->j][k], written here      y burst lent to j        Y[self->j][k], written here
--   r returned to j     Q[self->j][k], written here      z burst borrowed from j  Y[j->self][k], as heard from j
--   b borrowed from j   R[j->self][k], as heard from j
--   g regained from j   Q[j->self][k], as heard from j
-- Before them stands for each of the cells, in the same order, what they come to, so that to decide nobody need read them:
-- "@cell in out y z missing bytes;": rights borrowed and lent, burst lent and borrowed, the sum over all peers of the most
-- lent to each in this cell or a later one, and the length of its rows.
-- After a loss "!vanished whole unknown;" stands before all of that: the store time at which the bucket was found deleted, that
-- of the loss after which it was restored, and the peers ("j,j" or "-") of which it is not known what they were lent;
-- that counts as lent, in each cell to a peer of its own ("?cell"). Among the peers, "*base:most" says that not all nodes of
-- this region were heard of what they used before the loss: besides base, which is known, most counts as used.
-- A held bucket is a table with its terms (kind, window, length of a cell, tick, entitlement, burst, guard, and whether
-- it is recovered after a loss), until when it is known to be there, key, now, lost_at (0: nothing is missing), loss (the
-- last, mended or not), the current cell, cells[cell] with what its rows come to, and rows[cell][peer] once they are read.

-- floor_div and ceil_div divide exactly by b > 0 and round down and up.
local function floor_div(a, b)
  return (a - a % b) / b
end
local function ceil_div(a, b)
  return floor_div(a + b - 1, b)
end

-- hold reads the terms of a bucket from the arguments.
local function hold(key, now, lost_at)
  local h = {key = key, now = now, lost_at = lost_at, kind = arg(), window = num(), length = num(), tick = num(),
    entitlement = num(), burst = num(), guard = num(), recovered = num() == 1, known = num(), kept = -1}
  assert(h.window > 0 and h.length > 0 and h.tick > 0, 'terms without a window, a cell or a tick')
  h.cell = floor_div(now, h.length)
  h.ticks = ceil_div(h.window, h.tick)
  return h
end

local nobody = {}
local SLACK = 1000 -- ms by which a key outlives its use, as KeySlack says

-- read_marks takes in what stands before the rows, and returns where they begin.
local function read_marks(h, text)
  local vanished, whole, unknown, at = string.match(text, '^!(%d+) (%d+) (%S+);()')
  if not vanished then return 1 end
  h.vanished, h.whole = tonumber(vanished), tonumber(whole)
  h.lost_at = math.max(h.lost_at, h.vanished)
  if h.whole >= h.lost_at then
    h.lost_at, h.unknown = 0, {}
    for peer in string.gmatch(unknown, '[^,%-][^,]*') do
      local base, most = string.match(peer, '^%*(%d+):(%d+)$')
      if base then h.base, h.most = tonumber(base), tonumber(most) else h.unknown[peer] = true end
    end
  end
  h.loss = math.max(h.loss, h.vanished, h.whole)
  return at
end

-- read_rows takes in the field rows, but for the rows themselves; last is the last cell that has one. What this call has
-- read or written already it need not read again.
local function read_rows(h, text)
  h.vanished, h.whole, h.unknown, h.loss, h.base, h.most = 0, 0, nobody, h.lost_at, nil, nil
  local at = text and read_marks(h, text) or 1
  if h.cells and text == h.text then return end
  h.text, h.cells, h.rows, h.last = text, {}, nil, -1
  while text do
    local cell, into, out, y, z, missing, bytes, after =
      string.match(text, '^@(%d+) (%-?%d+) (%-?%d+) (%d+) (%d+) (%d+) (%d+);()', at)
    if not cell then break end
    at, h.last = after, tonumber(cell)
    h.cells[h.last] = {cell = h.last, into = tonumber(into), out = tonumber(out), y = tonumber(y), z = tonumber(z),
      missing = tonumber(missing), bytes = tonumber(bytes)}
  end
  h.body = at
end

-- rows_of reads the rows.
local function rows_of(h)
  if h.rows then return h.rows end
  h.rows = {}
  if not h.text then return h.rows end
  for cell, peer, l, r, b, g, y, z in string.gmatch(string.sub(h.text, h.body),
    '(%d+) (%S+) (%d+) (%d+) (%d+) (%d+) (%d+) (%d+);') do
    cell = tonumber(cell)
    h.rows[cell] = h.rows[cell] or {}
    h.rows[cell][peer] = {l = tonumber(l), r = tonumber(r), b = tonumber(b), g = tonumber(g), y = tonumber(y), z = tonumber(z)}
  end
  return h.rows
end

local function row_of(h, cell, peer)
  local rows = rows_of(h)[cell]
  return rows and rows[peer] or {l = 0, r = 0, b = 0, g = 0, y = 0, z = 0}
end

-- is_full says whether there are so many rows that there is room for none more, of a peer that has none in the cell.
local TIMES, ROWS = {sliding_window_counter = 2, sliding_window_log = 4, leaky_bucket = 2}, 24
local function is_full(h, cell, peer)
  local count = 0
  for k, rows in pairs(rows_of(h)) do
    if k == cell and rows[peer] then return false end
    for _ in pairs(rows) do count = count + 1 end
  end
  return count >= ROWS * (TIMES[h.kind] or 1)
end

-- weighs returns the time until which rows of a cell weigh.
local function weighs(h, cell)
  if h.kind == 'sliding_window_counter' then return (cell + 2) * h.window + h.guard + 2 * (h.tick - 1) end
  if h.kind == 'sliding_window_log' then return (cell + 1) * h.length + h.window + h.guard end
  return (cell + 1) * h.length
end

-- fill returns how long an empty bucket takes to fill at the entitlement, 0 for the other kinds.
local function fill(h)
  if h.burst == 0 or h.entitlement == 0 then return 0 end
  return math.min(ceil_div(h.burst * h.ticks, h.entitlement), floor_div(MAX, h.tick)) * h.tick
end

-- marks returns what stands before the rows, as long as the loss that it is about weighs.
local function marks(h)
  local last = math.max(h.vanished, h.whole)
  if last == 0 or weighs(h, floor_div(last, h.length) + 1) <= h.now then return '' end
  local unknown = {}
  if h.most then unknown[1] = '*' .. int(h.base) .. ':' .. int(h.most) end
  for peer in pairs(h.unknown) do unknown[#unknown + 1] = peer end
  table.sort(unknown)
  local names = table.concat(unknown, ',')
  if names == '' then names = '-' end
  return '!' .. int(h.vanished) .. ' ' .. int(h.whole) .. ' ' .. names .. ';'
end

-- order returns the cells of a table by cell, from the first on.
local function order(cells)
  local list = {}
  for cell in pairs(cells) do list[#list + 1] = cell end
  table.sort(list)
  return list
end

-- sum_up makes h.cells what the rows come to, and returns the text of each cell's rows. Where the rows of one cell alone
-- changed, the texts of the others are those read.
local function sum_up(h, changed)
  local texts, most, missing, read, at = {}, {}, 0, {}, h.body
  for _, cell in ipairs(changed == true and nobody or order(h.cells)) do
    read[cell] = string.sub(h.text, at, at + h.cells[cell].bytes - 1)
    at = at + h.cells[cell].bytes
  end
  if changed ~= true then read[changed] = nil end
  h.cells, h.last = {}, -1
  local cells = order(h.rows)
  for i = #cells, 1, -1 do
    local cell, text = cells[i], {}
    local sum = {cell = cell, into = 0, out = 0, y = 0, z = 0}
    for peer, row in pairs(h.rows[cell]) do
      local out = row.l - row.g
      sum.into, sum.out = sum.into + row.b - row.r, sum.out + out
      sum.y, sum.z = sum.y + row.y, sum.z + row.z
      if out > (most[peer] or 0) then
        missing = missing + out - (most[peer] or 0)
        most[peer] = out
      end
      if not read[cell] then
        text[#text + 1] = table.concat({int(cell), peer, int(row.l), int(row.r), int(row.b), int(row.g), int(row.y), int(row.z)}, ' ') .. ';'
      end
    end
    if read[cell] or #text > 0 then
      texts[cell] = read[cell] or table.concat(text)
      sum.missing, sum.bytes, h.last = missing, #texts[cell], math.max(h.last, cell)
      h.cells[cell] = sum
    end
  end
  return texts
end

-- forget drops the rows that weigh no more, read or not, and says whether there were any.
local function forget(h)
  local some = false
  for cell, sum in pairs(h.cells) do
    if weighs(h, cell) <= h.now then
      h.cells[cell], some = nil, true
      h.body = h.body + sum.bytes -- they come first
    end
  end
  for cell in pairs(h.rows or nobody) do
    if weighs(h, cell) <= h.now then
      h.rows[cell], some = nil, true
    end
  end
  return some
end

-- keep drops the rows that weigh no more, writes the others if they changed (true, or the one cell whose did), and has the hash outlive its last useful
-- moment, and the time least if that is later. Redis ends the hash at a time by its clock, which is never ahead of the
-- mark for long: whoever comes then finds that all of it is over.
local function keep(h, changed, least)
  local some, texts = forget(h), nil
  if changed then
    rows_of(h)
    forget(h)
    texts = sum_up(h, changed)
  end
  local before = marks(h)
  local over = before == '' and math.max(h.vanished, h.whole) > 0 -- the loss weighs no more
  if changed or some or over then
    local text, body = {before}, {}
    for _, cell in ipairs(order(h.cells)) do
      local c = h.cells[cell]
      text[#text + 1] = '@' .. table.concat({int(cell), int(c.into), int(c.out), int(c.y), int(c.z), int(c.missing), int(c.bytes)}, ' ') .. ';'
      if texts then body[#body + 1] = texts[cell] end
    end
    local front = table.concat(text)
    if texts then body = table.concat(body) else body = string.sub(h.text, h.body) end
    h.text, h.body = front .. body, #front + 1
    redis.call('HSET', h.key, 'rows', h.text)
  end
  h.kept = h.cell
  local ends = math.max(weighs(h, h.cell + 1) + fill(h), least or 0)
  redis.call('PEXPIREAT', h.key, int(floor_div(ends, 1000) + 1 + SLACK))
end

-- closed returns the time until which this region holds no rights because its store lost data: what it had then may
-- have concerned the cell of that moment and the next, and counts as fully lent and fully used as long as it weighs.
local function closed(h)
  if h.lost_at == 0 then return 0 end
  return weighs(h, floor_div(h.lost_at, h.length) + 1)
end

-- is_lost says whether a bucket must be restored before it can be used.
local function is_lost(h) return h.recovered and closed(h) > h.now end

-- unsure says whether it is not known of a cell what some peers were lent before a loss.
local function unsure(h, cell)
  return next(h.unknown) ~= nil and cell <= floor_div(h.whole, h.length) + 1
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
  local cell = floor_div(h.whole, h.length)
  if h.kind == 'sliding_window_counter' then cell = cell + 1 end
  return (cell + 1) * h.length
end

-- shut returns the time until which a loss keeps the bucket closed, or use that nobody told of may fill it; 0: it does not.
local function shut(h)
  local till = math.max(closed(h), untold_until(h))
  if till <= h.now then return 0 end
  return till
end

-- is_open says whether rights of a cell are not closed by a loss.
local function is_open(h, cell)
  return cell * h.length >= closed(h)
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

-- rights returns S of a cell as the rows of that cell alone have it.
local function rights(h, cell)
  if not is_open(h, cell) then return 0 end
  return h.entitlement + borrowed(h, cell) - (lent(h, cell))
end

-- there returns the time until which the bucket is known to be in the store, 0 if this call cannot tell: kept is the
-- cell of the last keep, as far as it was read or done.
local function there(h)
  if h.kept ~= h.cell then return 0 end
  return weighs(h, math.max(h.cell, h.last)) + fill(h)
end

-- doubt returns the time of a loss before which something happened that is not known and still may weigh: what peers were
-- lent, or what nodes used; 0: none.
local function doubt(h)
  if unsure(h, h.cell) or untold_until(h) > h.now then return h.whole end
  return 0
end

-- add_state appends a bucket's state to a reply: cell, entitlement, share, next share, used, fading, free, there, doubt, shut.
local function add_state(reply, h, s)
  local share, next_share, used, fading = s.state()
  for _, v in ipairs({h.cell, h.entitlement, share, next_share, used, fading, s.free(), there(h), doubt(h), shut(h)}) do reply[#reply + 1] = v end
end

-- add_rows appends the rows that weigh: cell, peer, lent, returned, borrowed, regained, burst lent, burst borrowed.
local function add_rows(reply, h)
  for cell, rows in pairs(rows_of(h)) do
    if weighs(h, cell) > h.now then
      for peer, row in pairs(rows) do
        for _, v in ipairs({cell, peer, row.l, row.r, row.b, row.g, row.y, row.z}) do reply[#reply + 1] = v end
      end
    end
  end
end

-- movable says whether rows of a cell may still be moved: OK, or why not.
local function movable(h, cell)
  if cell ~= h.cell and cell ~= h.cell + 1 then return FINISHED end
  if not is_open(h, cell) then return RECOVERING end
  return OK
end

-- kinds has for each algorithm, by its name in the policy document, the function that opens a held bucket. What it
-- returns has these functions:
--   state()                 share, next share, used, fading
--   free()                  units that fit now
--   fits(cost)
--   retry(cost)             after how many us the cost fits if nothing else happens; -1: never on the entitlement alone
--   take(cost)              charges a cost that fits; returns after how many us its turn has come
--   spare(kept)             rights of the current cell that may be given back, beyond kept units
--   room(cell, peer, kept)  what more of a cell may be lent to a peer, beyond kept units
--   room_burst(kept)        what more burst may be lent, beyond kept tokens
--   settle(tokens)          fixes what has happened so far, before rows change, and adds tokens that came or went
--   refund(at, cell, units) takes back a charge; returns the units, and why not
--   book(cell, units)       charges what was admitted in a window without the store, whether it fits or not; false: the
--                           window has not begun here
--   restore(cell, units, at)  of windows: at least so much was used, as seen at a time in a cell
--   known()                 of windows: what is known to be used that weighs since before the loss of untold
--   reset(), save()
-- It sets absent where there is nothing of the bucket in the store.
local kinds = {}
local NOT_REFUSED, NO_LONGER_WEIGHS, TURN_PROMISED, NO_SUCH_LIMIT = 0, 1, 2, 3
local function zero() return 0 end

-- open opens a bucket. One that is not there although this node knows that it still weighs was deleted, and is as lost
-- as one of a store that lost everything.
local function open(h)
  local lost_at = h.lost_at
  local s = kinds[h.kind](h)
  if h.absent and h.known > h.now then
    h.vanished = h.now
    keep(h, true)
    h.lost_at = lost_at
    s = kinds[h.kind](h)
  end
  return s
end
