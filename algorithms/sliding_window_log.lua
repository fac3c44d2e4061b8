-- sliding_window_log: admit when the units of (t - W, t] and the cost fit into S. A unit lent in a cell is missing from
-- the lender until a window (and the guard) after its end; of each peer, the most lent in any cell that still weighs,
-- the next one included. Fields: u units in the log, s units by the cell that they were admitted in ("cell:units;" each),
-- w the cell of the last keep, and the log itself: a queue of pieces
-- q<first> to q<last> (fields f and l), each "base sum;d:units;d:units;" with entries of time base + d. An admission writes
-- the last piece only; whole pieces are passed over by their sums.
local PIECE = 1000 -- bytes after which a new piece is begun

kinds.sliding_window_log = function(h)
  local v = redis.call('HMGET', h.key, 'rows', 'u', 'w', 'f', 'l', 's')
  read_rows(h, v[1])
  h.absent = not v[1] and not v[2]
  h.kept = math.max(h.kept, tonumber(v[3] or -1))
  local used, written = tonumber(v[2] or 0), tonumber(v[3] or -1)
  local first, last = tonumber(v[4] or 1), tonumber(v[5] or 0)
  local taken, dirty, opening = 0, false, closed(h)
  local hidden, shown = untold(h), untold_until(h) -- what nobody told of, and when it has left the window
  local sums, oldest = {}, h.cell - ceil_div(h.window, h.length)
  for cell, units in string.gmatch(v[6] or '', '(%d+):(%d+);') do sums[tonumber(cell)] = tonumber(units) end
  local peers = {}
  for _, rows in pairs(h.rows) do
    for peer in pairs(rows) do peers[peer] = true end
  end

  local function field(piece) return 'q' .. int(piece) end
  local function head(base, sum) return int(base) .. ' ' .. int(sum) .. ';' end
  -- load returns a piece: its text, base, sum, and the position of its first entry.
  local function load(piece)
    local text = redis.call('HGET', h.key, field(piece))
    local base, sum, at = string.match(text, '^(%d+) (%d+);()')
    return text, tonumber(base), tonumber(sum), at
  end

  -- The queue from here on: entries of piece live from position at on are still in the window, sum units of that piece.
  -- A piece is over when the next one's first entry is.
  local live, text, base, sum, at, cut = first, nil, nil, 0, nil, false
  if live <= last then text, base, sum, at = load(live) end
  while live < last do
    local next_text, next_base, next_sum, next_at = load(live + 1)
    if next_base + h.window > h.now then break end
    used, live = used - sum, live + 1
    text, base, sum, at = next_text, next_base, next_sum, next_at
  end
  while live <= last do
    local d, units, after = string.match(text, '^(%d+):(%d+);()', at)
    if not d then
      live = live + 1
      cut = false
      if live <= last then text, base, sum, at = load(live) end
    elseif base + d + h.window <= h.now then
      used, sum, at, cut = used - units, sum - units, after, true
    else
      break
    end
  end

  -- missing returns what is missing at time t because of a peer, leaving the rows of one cell out.
  local function missing(peer, t, without)
    local most = 0
    for cell, rows in pairs(h.rows) do
      local row = rows[peer]
      if row and cell ~= without and weighs(h, cell) > t then most = math.max(most, row.l - row.g) end
    end
    return most
  end

  local function share(t)
    if t < opening then return 0 end
    local sum = h.entitlement + borrowed(h, floor_div(t, h.length))
    if t < shown then sum = sum - hidden end
    for peer in pairs(peers) do sum = sum - missing(peer, t, -1) end
    return sum
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

  -- falls returns when at most so many units are left in the window.
  local function falls(units)
    local left = used
    if left <= units then return 0 end
    local piece, body, start, holds, pos = live, text, base, sum, at
    while piece <= last do
      if left - holds > units then
        left = left - holds
      else
        while true do
          local d, n, after = string.match(body, '^(%d+):(%d+);()', pos)
          if not d then break end
          left, pos = left - n, after
          if left <= units then return start + d + h.window end
        end
      end
      piece = piece + 1
      if piece <= last then body, start, holds, pos = load(piece) end
    end
    return h.now + h.window -- what was taken just now
  end

  -- retry goes through the times at which S may change; between them, entries leave the window.
  function s.retry(cost)
    local changes = {h.now, opens, opens + h.length, opening, shown}
    for cell in pairs(h.rows) do changes[#changes + 1] = weighs(h, cell) end
    table.sort(changes)
    for i, from in ipairs(changes) do
      local room = share(from) - cost
      if from >= h.now and room >= 0 then
        local t = math.max(from, falls(room))
        if i == #changes or t < changes[i + 1] then return t - h.now end
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

  -- write makes the queue in the hash what it is here.
  local function write()
    for piece = first, live - 1 do redis.call('HDEL', h.key, field(piece)) end
    if cut then
      text, at = head(base, sum) .. string.sub(text, at), #head(base, sum) + 1
      redis.call('HSET', h.key, field(live), text)
    end
    if taken > 0 then
      local tail, since, holds, from = text, base, sum, at
      if last > live then tail, since, holds, from = load(last) end
      if last < live or #tail > PIECE then
        last = math.max(last, live - 1) + 1
        tail, since, holds, from = '', h.now, 0, 1
      end
      redis.call('HSET', h.key, field(last), head(since, holds + taken) .. string.sub(tail, from) ..
        int(h.now - since) .. ':' .. int(taken) .. ';')
    end
    first, cut, taken = live, false, 0
    local list = {}
    for cell, units in pairs(sums) do
      if cell >= oldest then list[#list + 1] = int(cell) .. ':' .. int(units) .. ';' end
    end
    redis.call('HSET', h.key, 'u', int(used), 'f', int(first), 'l', int(last), 'w', int(h.cell), 's', table.concat(list))
  end

  function s.refund(time, cell, units)
    if time + h.window <= h.now then return 0, NO_LONGER_WEIGHS end
    write()
    local left = units
    for piece = first, last do
      local body, start, holds, from = load(piece)
      local before = left
      local rest = string.gsub(string.sub(body, from), '(%d+):(%d+);', function(d, n)
        if left == 0 or start + d ~= time then return nil end
        n = tonumber(n)
        local back = math.min(left, n)
        left = left - back
        if back == n then return '' end
        return d .. ':' .. int(n - back) .. ';'
      end)
      if left < before then redis.call('HSET', h.key, field(piece), head(start, holds - (before - left)) .. rest) end
    end
    used, dirty = used - (units - left), true
    sums[cell] = (sums[cell] or 0) - (units - left)
    return units - left, NOT_REFUSED
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
    last, used, base, sum = last + 1, units, time, units
    live, at = last, #head(base, sum) + 1
    text = head(base, sum) .. '0:' .. int(units) .. ';'
    sums[cell] = units
    redis.call('HSET', h.key, field(last), text)
  end

  function s.known() return used end

  function s.reset()
    for piece = first, last do redis.call('HDEL', h.key, field(piece)) end
    first, live, last, used, taken, cut, sums, dirty = last + 1, last + 1, last, 0, 0, false, {}, true
  end

  function s.save()
    if not dirty then return end
    write()
    if written ~= h.cell then keep(h) end
  end

  return s
end
