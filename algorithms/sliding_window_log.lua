-- sliding_window_log: admit when the units of (t - W, t] and the cost fit into S. A unit lent in a cell is missing from
-- the lender until a window (and the guard) after its end; of each peer, the most lent in any cell that still weighs,
-- the next one included.
-- Fields: u units in the log, s units by the cell that they were admitted in ("cell:units;" each), w the cell of the last
-- keep, and the log itself, a queue of pieces. Piece p is the field qp, "d:units;d:units;", with entries of time base + d.
-- What a piece holds is said by its head, "p base sum n;": its units and entries. The first piece's head is the field a,
-- the last one's h (of a single piece: h), all between them d. So an admission writes the last piece only, and
-- whole pieces are passed over by their heads. Two pieces beside each other hold more entries together than fit into one
-- (but for the first and the last), so that there are not many, whatever was refunded.
local ENTRIES = 64 -- entries of a piece, after which a new one is begun

kinds.sliding_window_log = function(h)
  local v = redis.call('HMGET', h.key, 'rows', 'u', 'w', 'a', 'd', 'h', 's')
  read_rows(h, v[1])
  h.absent = not v[1] and not v[2]
  h.kept = math.max(h.kept, tonumber(v[3] or -1))
  local used, written = tonumber(v[2] or 0), tonumber(v[3] or -1)
  local taken, dirty, opening = 0, false, closed(h)
  local hidden, shown = untold(h), untold_until(h) -- what nobody told of, and when it has left the window
  local sums, oldest = {}, h.cell - ceil_div(h.window, h.length)
  for cell, units in string.gmatch(v[7] or '', '(%d+):(%d+);') do sums[tonumber(cell)] = tonumber(units) end

  local function field(piece) return 'q' .. int(piece) end
  local function head_of(p) return int(p.piece) .. ' ' .. int(p.base) .. ' ' .. int(p.sum) .. ' ' .. int(p.n) .. ';' end
  -- heads is the text of all heads, last that of the last piece's; head reads one at a position, and where it ends.
  local last = v[6] or ''
  local heads = (v[4] or '') .. (v[5] or '') .. last
  local function head(pos)
    local piece, base, sum, n, after = string.match(heads, '^(%d+) (%d+) (%d+) (%d+);()', pos)
    if not piece then return nil, pos end
    return {piece = tonumber(piece), base = tonumber(base), sum = tonumber(sum), n = tonumber(n)}, after
  end
  local texts, over = {}, {} -- pieces as they are to be written, and the fields of those to be deleted
  local function load(p)
    texts[p.piece] = texts[p.piece] or redis.call('HGET', h.key, field(p.piece))
    return texts[p.piece]
  end
  local changed = {} -- pieces to be written

  -- What has left the window: whole pieces before one that began so long ago, then entries of that one. first is the
  -- first piece that is left, the heads of the others begin at rest.
  local first, rest = head(1)
  while first do
    local following, after = head(rest)
    if not following or following.base + h.window > h.now then break end
    used = used - first.sum
    over[#over + 1] = field(first.piece)
    first, rest = following, after
  end
  if first and first.base + h.window <= h.now then
    local text, at = load(first), 1
    for d, units, after in string.gmatch(text, '(%d+):(%d+);()') do
      if first.base + d + h.window > h.now then break end
      used, first.sum, first.n, at = used - units, first.sum - units, first.n - 1, after
    end
    if at > 1 then texts[first.piece], changed[first.piece] = string.sub(text, at), true end
    if at > #text and rest <= #heads then
      over[#over + 1], changed[first.piece] = field(first.piece), nil
      first, rest = head(rest)
    end
  end

  -- pieces returns all pieces that are left, each with the units up to its end.
  local known
  local function pieces()
    if known then return known end
    known = {first}
    if not first then return known end
    first.upto = first.sum
    local upto = first.sum
    for piece, base, sum, n in string.gmatch(string.sub(heads, rest), '(%d+) (%d+) (%d+) (%d+);') do
      upto = upto + sum
      known[#known + 1] = {piece = tonumber(piece), base = tonumber(base), sum = tonumber(sum), n = tonumber(n), upto = upto}
    end
    return known
  end

  -- find returns the first index of a list at which a field of what is there is at least so much, by halving.
  local function find(list, name, least)
    local lo, hi = 1, #list + 1
    while lo < hi do
      local mid = floor_div(lo + hi, 2)
      if list[mid][name] >= least then hi = mid else lo = mid + 1 end
    end
    return lo
  end

  -- entries returns what is in a piece: each entry's time, and the units up to it.
  local function entries(p)
    if p.entries then return p.entries end
    local list, upto = {}, p.upto - p.sum
    for d, units in string.gmatch(load(p), '(%d+):(%d+);') do
      upto = upto + units
      list[#list + 1] = {time = p.base + d, upto = upto}
    end
    p.entries = list
    return list
  end

  -- gone returns how many units will have left the window at time t, of those written.
  local function gone(t)
    local all = pieces()
    local p = all[find(all, 'base', t - h.window + 1) - 1]
    if not p then return 0 end
    local list = entries(p)
    local e = list[find(list, 'time', t - h.window + 1) - 1]
    return e and e.upto or p.upto - p.sum
  end

  -- falls returns when at most so many units are left in the window.
  local function falls(units)
    local leave, all = used - units, pieces()
    if leave <= 0 then return 0 end
    local p = all[find(all, 'upto', leave)]
    if not p then return h.now + h.window end -- what was taken just now
    local list = entries(p)
    return list[find(list, 'upto', leave)].time + h.window
  end

  -- missing returns what is missing at time t because of a peer, leaving the rows of one cell out.
  local function missing(peer, t, without)
    local most = 0
    for cell, rows in pairs(rows_of(h)) do
      local row = rows[peer]
      if row and cell ~= without and weighs(h, cell) > t then most = math.max(most, row.l - row.g) end
    end
    return most
  end

  -- shadows are the cells that have rows, from the last back.
  local shadows = {}
  for cell, sum in pairs(h.cells) do shadows[#shadows + 1] = {cell = cell, weighs = weighs(h, cell), missing = sum.missing} end
  table.sort(shadows, function(a, b) return a.cell > b.cell end)

  local function share(t)
    if t < opening then return 0 end
    local lack = 0
    if t < shown then lack = hidden end
    local lent_out = 0
    for _, shadow in ipairs(shadows) do
      if shadow.weighs <= t then break end
      lent_out = shadow.missing
    end
    return h.entitlement + borrowed(h, floor_div(t, h.length)) - lack - lent_out
  end

  local now, opens = share(h.now), (h.cell + 1) * h.length
  local s = {room_burst = zero, settle = zero}

  -- What is still in the window when the cell ends are the units of its last cells, as many as there are in a window.
  function s.state()
    local staying = 0
    for cell, units in pairs(sums) do
      if cell > oldest then staying = staying + units end
    end
    return now, share(opens), used, math.max(used - staying, 0)
  end

  function s.free() return math.max(now - used, 0) end

  function s.fits(cost) return cost <= now - used end

  -- steps are the times from now on at which S may change, each with what S is then, until when, and how many units will
  -- have left the window just before that. Between them, entries leave the window.
  local steps
  local function plan()
    if steps then return steps end
    steps = {}
    local changes = {h.now, opens, opens + h.length, opening, shown}
    for _, shadow in ipairs(shadows) do changes[#changes + 1] = shadow.weighs end
    table.sort(changes)
    for i, from in ipairs(changes) do
      if from >= h.now and from ~= changes[i + 1] then
        steps[#steps + 1] = {from = from, share = share(from), til = changes[i + 1]}
      end
    end
    return steps
  end

  function s.retry(cost)
    for _, step in ipairs(plan()) do
      local room = step.share - cost
      if room >= 0 then
        if not step.til or step.til > h.now + h.window then return math.max(step.from, falls(room)) - h.now end
        step.gone = step.gone or gone(step.til - 1)
        if used - step.gone <= room then return math.max(step.from, falls(room)) - h.now end
      end
    end
    return -1
  end

  function s.take(cost)
    used, taken, dirty = used + cost, taken + cost, true
    sums[h.cell] = (sums[h.cell] or 0) + cost
    return 0
  end

  function s.spare(kept) return now - used - kept end

  -- As for the counter, lending within what is missing anyhow is free, and rights of the next cell must be free now.
  function s.room(cell, peer, kept)
    if s.spare(0) < 0 then return 0 end
    local row = row_of(h, cell, peer)
    local out = row.l - row.g
    local shadow = math.max(out, missing(peer, h.now, cell)) - out
    if cell == h.cell then return shadow + s.spare(kept) end
    local coming = math.max(out, missing(peer, opens, cell)) - out
    return math.min(shadow + s.spare(0), coming + share(opens) - kept)
  end

  -- append enters what was taken, and returns the heads that come before the last one.
  local function append(before)
    local p, text = nil, ''
    if rest <= #heads then p = head(#heads - #last + 1) else p = first end
    if p then text = load(p) end
    local d, units = string.match(text, '(%d+):(%d+);$', -40)
    if d and p.base + d == h.now then -- one entry for each time
      text = string.sub(text, 1, -#units - 2) .. int(units + taken) .. ';'
    else
      if not p or p.n >= ENTRIES then
        if p then before = before .. head_of(p) end
        p, text = {piece = p and p.piece + 1 or 1, base = h.now, sum = 0, n = 0}, ''
      elseif p.n == 0 then
        p.base, text = h.now, ''
      end
      text, p.n = text .. int(h.now - p.base) .. ':' .. int(taken) .. ';', p.n + 1
    end
    p.sum, taken = p.sum + taken, 0
    texts[p.piece], changed[p.piece], last = text, true, head_of(p)
    return before
  end

  -- write makes the queue in the hash what it is here.
  local function write()
    local before = '' -- all heads but the last
    if first and rest <= #heads then
      before = head_of(first) .. string.sub(heads, rest, #heads - #last)
    else
      last = first and head_of(first) or ''
    end
    if taken > 0 then before = append(before) end
    local a = string.match(before, '^[^;]*;') or ''
    local list = {}
    for cell, units in pairs(sums) do
      if cell >= oldest then list[#list + 1] = int(cell) .. ':' .. int(units) .. ';' end
    end
    local set = {'u', int(used), 'w', int(h.cell), 's', table.concat(list), 'h', last}
    local function put(name, text)
      set[#set + 1], set[#set + 2] = name, text
    end
    if a ~= (v[4] or '') then put('a', a) end
    local d = string.sub(before, #a + 1)
    if d ~= (v[5] or '') then put('d', d) end
    for piece in pairs(changed) do put(field(piece), texts[piece]) end
    if #over > 0 then redis.call('HDEL', h.key, unpack(over)) end
    redis.call('HSET', h.key, unpack(set))
  end

  -- lay makes a list of pieces what is left of the log.
  local function lay(list)
    local text = {}
    for i, p in ipairs(list) do text[i] = head_of(p) end
    heads, first, known = table.concat(text), list[1], nil
    rest, last = #(text[1] or '') + 1, text[#text] or ''
  end

  -- join puts the entries of a piece behind those of the one before, if they fit and it is not the last.
  local function join(list, i)
    local p, q = list[i], list[i + 1]
    if not p or i + 1 >= #list or p.n + q.n > ENTRIES then return end
    local text = string.gsub(load(q), '(%d+):', function(d) return int(d + q.base - p.base) .. ':' end)
    texts[p.piece], changed[p.piece] = load(p) .. text, true
    p.n, p.sum = p.n + q.n, p.sum + q.sum
    over[#over + 1], changed[q.piece] = field(q.piece), nil
    table.remove(list, i + 1)
  end

  function s.refund(time, cell, units)
    if time + h.window <= h.now then return 0, NO_LONGER_WEIGHS end
    dirty = true
    local list = pieces()
    local i = find(list, 'base', time + 1) - 1
    local p = list[i]
    if not p then return 0, NOT_REFUSED end
    local text, before, from, held, to = load(p), 1, nil, nil, nil
    for d, n, after in string.gmatch(text, '(%d+):(%d+);()') do
      if p.base + d >= time then
        if p.base + d == time then from, held, to = before, tonumber(n), after end
        break
      end
      before = after
    end
    if not from then return 0, NOT_REFUSED end
    units = math.min(units, held)
    local entry = ''
    if units < held then entry = int(time - p.base) .. ':' .. int(held - units) .. ';' else p.n = p.n - 1 end
    texts[p.piece], changed[p.piece] = string.sub(text, 1, from - 1) .. entry .. string.sub(text, to), true
    p.sum, used = p.sum - units, used - units
    sums[cell] = (sums[cell] or 0) - units
    join(list, i)
    join(list, i - 1)
    lay(list)
    return units, NOT_REFUSED
  end

  -- The log is in order of time, so what was admitted without the store is entered now.
  function s.book(_, units)
    s.take(units)
    return true
  end

  -- What counted at a time is one entry of that time: it leaves the window later than it did, never sooner.
  function s.restore(cell, units, time)
    time = math.min(time, h.now)
    if units <= used or time + h.window <= h.now then return end
    s.reset()
    local p = {piece = 1, base = time, sum = units, n = 1}
    lay({p})
    used = units
    sums[cell] = units
    texts[1], changed[1] = '0:' .. int(units) .. ';', true
  end

  function s.known() return used end

  function s.reset()
    for _, p in ipairs(pieces()) do over[#over + 1] = field(p.piece) end
    lay({})
    texts, changed, used, taken, sums, dirty = {}, {}, 0, 0, {}, true
  end

  function s.save()
    if not dirty then return end
    write()
    if written ~= h.cell then keep(h) end
  end

  return s
end
