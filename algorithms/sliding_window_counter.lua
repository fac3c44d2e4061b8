-- sliding_window_counter: admit when used[k] + used[k-1] (1-f) + cost <= S[k], f the elapsed fraction of the cell.
-- Amounts are numerators over the ticks of a window. Of each peer, what is missing from S is the largest of what is
-- lent, what is promised for the next cell, and what was lent in earlier cells as far as it still weighs.
-- Fields: c the cell that u counts, u units used in it, p units used in the cell before.
kinds.sliding_window_counter = function(h)
  local v = redis.call('HMGET', h.key, 'rows', 'c', 'u', 'p')
  read_rows(h, v[1])
  h.absent = not v[1] and not v[2]
  h.kept = math.max(h.kept, tonumber(v[2] or -1))
  local ticks, opening = h.ticks, closed(h)
  local elapsed = floor_div(h.now - h.cell * h.length, h.tick)
  local counted = tonumber(v[2] or -2)
  local used, before, dirty = 0, 0, false
  if counted == h.cell then
    used, before = tonumber(v[3]), tonumber(v[4])
  elseif counted == h.cell - 1 then
    before = tonumber(v[3])
  end
  local hidden, hidden_before = 0, 0 -- of what nobody told of, what is in used and in before
  if untold_until(h) > h.now then
    if h.cell == floor_div(h.whole, h.length) then hidden = untold(h) else hidden_before = untold(h) end
    used, before = used + hidden, before + hidden_before
  end
  local peers = {}
  for _, rows in pairs(h.rows) do
    for peer in pairs(rows) do peers[peer] = true end
  end

  -- weight returns what part of the units lent in a cell, over ticks, is missing in cell k after e ticks.
  local function weight(cell, k, e)
    if cell >= k then return ticks end
    local since = floor_div((k - 1 - cell) * h.length + e * h.tick - h.guard, h.tick)
    return math.min(math.max(ticks - since, 0), ticks)
  end

  -- missing returns what is missing because of a peer in cell k after e ticks, leaving the rows of one cell out.
  local function missing(peer, k, e, without)
    local most = 0
    for cell, rows in pairs(h.rows) do
      local row = rows[peer]
      if row and cell ~= without and cell <= k + 1 then
        most = math.max(most, (row.l - row.g) * weight(cell, k, e))
      end
    end
    return most
  end

  -- share returns S in cell k after e ticks.
  local function share(k, e)
    if k * h.length + e * h.tick < opening then return 0 end
    local sum = (h.entitlement + borrowed(h, k)) * ticks
    for peer in pairs(peers) do sum = sum - missing(peer, k, e, -1) end
    return sum
  end

  -- estimate returns what counts as used in cell k after e ticks if nothing more is admitted.
  local function estimate(k, e)
    if k == h.cell then return used * ticks + before * (ticks - e) end
    if k == h.cell + 1 then return used * (ticks - e) end
    return 0
  end

  local function free(k, e) return floor_div(share(k, e) - estimate(k, e), ticks) end

  local now = share(h.cell, elapsed)
  local s = {room_burst = zero, settle = zero}

  function s.state()
    return floor_div(now, ticks), floor_div(share(h.cell + 1, 0), ticks), ceil_div(estimate(h.cell, elapsed), ticks),
      floor_div(before * (ticks - elapsed), ticks)
  end

  function s.free() return math.max(floor_div(now - estimate(h.cell, elapsed), ticks), 0) end

  function s.fits(cost) return cost <= floor_div(now - estimate(h.cell, elapsed), ticks) end

  -- Within a cell only time passes, so the room only grows: the first tick at which the cost fits is found by halving.
  function s.retry(cost)
    local last, settled = floor_div(h.length - 1, h.tick), math.max(weighs(h, h.last), opening)
    local k, lo = h.cell, elapsed
    while true do
      if cost <= free(k, last) then
        local hi = last
        while lo < hi do
          local mid = floor_div(lo + hi, 2)
          if cost <= free(k, mid) then hi = mid else lo = mid + 1 end
        end
        return k * h.length + lo * h.tick - h.now
      end
      if k > h.cell + 1 and k * h.length >= settled then return -1 end
      k, lo = k + 1, 0
    end
  end

  function s.take(cost)
    used, dirty = used + cost, true
    return 0
  end

  local function slack(kept)
    return now - estimate(h.cell, elapsed) - math.min(kept, h.entitlement + borrowed(h, h.cell)) * ticks
  end

  function s.spare(kept) return floor_div(slack(kept), ticks) end

  -- Lending within what is missing because of the peer anyhow costs nothing. Rights of the next cell must be free in
  -- this one already, and the kept ones are those of the next.
  function s.room(cell, peer, kept)
    if slack(0) < 0 then return 0 end
    local row = row_of(h, cell, peer)
    local out = row.l - row.g
    local function more(k, e, left)
      return floor_div(math.max(out * ticks, missing(peer, k, e, cell)) + left, ticks) - out
    end
    if cell == h.cell then return more(cell, elapsed, slack(kept)) end
    kept = math.min(kept, h.entitlement + borrowed(h, cell))
    return math.min(more(h.cell, elapsed, slack(0)), more(cell, 0, share(cell, 0) - kept * ticks))
  end

  function s.refund(_, cell, units)
    if cell == h.cell then
      units = math.min(units, used - hidden)
      used = used - units
    elseif cell == h.cell - 1 then
      units = math.min(units, before - hidden_before)
      before = before - units
    else
      return 0, NO_LONGER_WEIGHS
    end
    dirty = true
    return units, NOT_REFUSED
  end

  function s.book(cell, units)
    if cell == h.cell then used = used + units end
    if cell == h.cell - 1 then before = before + units end
    dirty = true
    return cell <= h.cell
  end

  -- What counted at a time counts as used in its cell: it fades later than it did, never sooner.
  function s.restore(cell, units)
    if cell == h.cell then used = math.max(used, units) end
    if cell == h.cell - 1 then before = math.max(before, units) end
    dirty = true
  end

  function s.known()
    if h.cell == floor_div(h.whole, h.length) then return used - hidden end
    return before - hidden_before
  end

  function s.reset() used, before, hidden, hidden_before, dirty = 0, 0, 0, 0, true end

  function s.save()
    if not dirty then return end
    redis.call('HSET', h.key, 'c', int(h.cell), 'u', int(used - hidden), 'p', int(before - hidden_before))
    if counted ~= h.cell then keep(h) end
  end

  return s
end
