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
  -- weight returns what part of the units lent in a cell, over ticks, is missing in cell k after e ticks.
  local function weight(cell, k, e)
    if cell >= k then return ticks end
    local since = floor_div((k - 1 - cell) * h.length + e * h.tick - h.guard, h.tick)
    return math.min(math.max(ticks - since, 0), ticks)
  end

  -- missing returns what is missing because of a peer in cell k after e ticks, leaving the rows of one cell out.
  local function missing(peer, k, e, without)
    local most = 0
    for cell, rows in pairs(rows_of(h)) do
      local row = rows[peer]
      if row and cell ~= without and cell <= k + 1 then
        most = math.max(most, (row.l - row.g) * weight(cell, k, e))
      end
    end
    return most
  end

  -- loans says what is lent, where nobody need ask for the peer, by cell: to those with one loan that counts. The others
  -- are in several, each with a list of loans. What was lent in a cell counts only if no more was in a later one.
  local loans, several
  local function read_loans()
    loans, several = {}, {}
    local some, most, of = false, {}, {}
    for _, sum in pairs(h.cells) do some = some or sum.missing > 0 end
    if not some then return end
    local rows = rows_of(h)
    local cells = order(rows)
    for i = #cells, 1, -1 do
      for peer, row in pairs(rows[cells[i]]) do
        local out = row.l - row.g
        if out > (most[peer] or 0) then
          most[peer], of[peer] = out, of[peer] or {}
          local list = of[peer]
          list[#list + 1] = {cell = cells[i], out = out}
        end
      end
    end
    for _, list in pairs(of) do
      local cell = list[1].cell
      if #list > 1 then several[#several + 1] = list else loans[cell] = (loans[cell] or 0) + list[1].out end
    end
  end

  -- share returns S in cell k after e ticks.
  local function share(k, e)
    if k * h.length + e * h.tick < opening then return 0 end
    if not loans then read_loans() end
    local sum, weights = (h.entitlement + borrowed(h, k)) * ticks, {}
    for cell in pairs(h.cells) do
      weights[cell] = weight(cell, k, e)
      sum = sum - (loans[cell] or 0) * weights[cell]
    end
    for _, list in ipairs(several) do
      local most = 0
      for _, loan in ipairs(list) do
        local missing = loan.out * (weights[loan.cell] or 0)
        if missing > most then most = missing end
      end
      sum = sum - most
    end
    return sum
  end

  -- estimate returns what counts as used in cell k after e ticks if nothing more is admitted.
  local function estimate(k, e)
    if k == h.cell then return used * ticks + before * (ticks - e) end
    if k == h.cell + 1 then return used * (ticks - e) end
    return 0
  end

  -- room returns what is left of S in cell k after e ticks. S does not change while requests are decided.
  local shares = {}
  local function room(k, e)
    local of = shares[k] or {}
    shares[k] = of
    of[e] = of[e] or share(k, e)
    return of[e] - estimate(k, e)
  end

  local now = share(h.cell, elapsed)
  local s = {room_burst = zero, settle = zero}

  function s.state()
    return floor_div(now, ticks), floor_div(share(h.cell + 1, 0), ticks), ceil_div(estimate(h.cell, elapsed), ticks),
      floor_div(before * (ticks - elapsed), ticks)
  end

  function s.free() return math.max(floor_div(now - estimate(h.cell, elapsed), ticks), 0) end

  function s.fits(cost) return cost <= floor_div(now - estimate(h.cell, elapsed), ticks) end

  -- narrow tells the ticks at which a loan begins to fade in cell k, or has faded, and returns between which of them there
  -- is enough room for the first time.
  local function narrow(k, lo, hi, need)
    for cell in pairs(h.cells) do
      local gone = ticks - floor_div((k - 1 - cell) * h.length - h.guard, h.tick)
      for _, e in ipairs(cell < k and {gone - ticks, gone} or nobody) do
        if e > lo and e < hi then
          if room(k, e) >= need then hi = e else lo = e end
        end
      end
    end
    return lo, hi
  end

  -- reaches returns the first tick of cell k, after one of too little room up to one of enough, at which there is as much
  -- as is needed. Within a cell only time passes, so the room only grows. Each try is where it would be enough if it grew
  -- in proportion between the two; the end that stayed twice counts half as far off, and each fifth try is in the middle.
  local function reaches(k, lo, hi, need)
    lo, hi = narrow(k, lo, hi, need)
    local lack, more, stayed, try = need - room(k, lo), room(k, hi) - need, 0, 0
    while hi - lo > 1 do
      local mid = lo + math.ceil(lack / (lack + more) * (hi - lo))
      try = try + 1
      if try % 5 == 0 then mid = floor_div(lo + hi, 2) end
      mid = math.min(math.max(mid, lo + 1), hi - 1)
      local there = room(k, mid) - need
      if there >= 0 then
        hi, more = mid, there
        if stayed < 0 then lack = lack / 2 end
        stayed = -1
      else
        lo, lack = mid, -there
        if stayed > 0 then more = more / 2 end
        stayed = 1
      end
    end
    return hi
  end

  function s.retry(cost)
    local last, settled = floor_div(h.length - 1, h.tick), math.max(weighs(h, h.last), opening)
    local k, lo, need = h.cell, elapsed, cost * ticks
    while true do
      if need <= room(k, last) then
        local at = lo
        if room(k, lo) < need then at = reaches(k, lo, last, need) end
        return k * h.length + at * h.tick - h.now
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
