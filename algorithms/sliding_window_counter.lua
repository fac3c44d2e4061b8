-- sliding_window_counter: admit when used[k] + used[k-1] (1-f) + cost <= S[k], f the elapsed fraction of the cell.
-- Amounts are numerators over the ticks of a window. Of each peer, what is missing from S is the largest of what is
-- lent, what is promised for the next cell, and what was lent in earlier cells as far as it still weighs.
-- Fields: c the cell that u counts, u units used in it, p units used in the cell before.
kinds.sliding_window_counter = function()
  -- Where there are no rows and no loss that weighs, S is the entitlement, and a bucket has no shares. Of what nobody
  -- told of, hidden is in used, hidden_before in before. Changed is whether before is no longer the one stored.
  local Counter = {shares = false, hidden = 0, hidden_before = 0, changed = false, room_burst = zero, settle = zero}
  Counter.__index = Counter

  -- elapsed returns the ticks of the cell that are over. They are the same for all buckets of a limit.
  local function elapsed(h)
    local e = h.elapsed
    if not e then
      e = floor_div(h.now - h.cell * h.length, h.tick)
      getmetatable(h).elapsed = e
    end
    return e
  end

  -- In units, over is what counts now of the cell before, rounded up, and left is what is left of S now; see count.
  function Counter.open(h)
    local v = fields(h, 'c', 'u', 'p')
    local counted, current, used, before = v[2], false, 0, 0
    read_rows(h, v[1])
    h.absent = not v[1] and not counted
    if counted == h.cell_text then
      h.kept, current, used, before = h.cell, true, tonumber(v[3]), tonumber(v[4])
    elseif counted then
      counted = tonumber(counted)
      h.kept = math.max(h.kept, counted)
      if counted == h.cell - 1 then before = tonumber(v[3]) end
    end
    local self = setmetatable({h = h, used = used, before = before, over = 0, left = h.entitlement - used,
      current = current, dirty = false}, Counter)
    if h.cells ~= nobody or h.lost_at ~= 0 and h.cell * h.length + elapsed(h) * h.tick < closed(h) then
      self.shares = {}
      self:hide()
      self:count()
    elseif before > 0 then
      self:count()
    end
    return self
  end

  -- hide counts as used what nobody told of.
  function Counter:hide()
    local h = self.h
    if untold_until(h) <= h.now then return end
    if h.cell == floor_div(h.whole, h.length) then self.hidden = untold(h) else self.hidden_before = untold(h) end
    self.used, self.before = self.used + self.hidden, self.before + self.hidden_before
  end

  -- count works out what of the cell before counts now, and what is left of S.
  function Counter:count()
    local h = self.h
    local ticks, e = h.ticks, elapsed(h)
    local fading = self.before * (ticks - e)
    self.over = ceil_div(fading, ticks)
    self.left = floor_div(self:share(h.cell, e) - fading, ticks) - self.used
  end

  -- weight returns what part of the units lent in a cell, over ticks, is missing in cell k after e ticks.
  local function weight(h, cell, k, e)
    local ticks = h.ticks
    if cell >= k then return ticks end
    local since = floor_div((k - 1 - cell) * h.length + e * h.tick - h.guard, h.tick)
    return math.min(math.max(ticks - since, 0), ticks)
  end

  -- missing returns what is missing because of a peer in cell k after e ticks, leaving the rows of one cell out.
  local function missing(h, peer, k, e, without)
    local most = 0
    for cell, rows in pairs(rows_of(h)) do
      local row = rows[peer]
      if row and cell ~= without and cell <= k + 1 then
        most = math.max(most, (row.l - row.g) * weight(h, cell, k, e))
      end
    end
    return most
  end

  -- read_loans says what is lent, where nobody need ask for the peer, by cell: in loans, to those with one loan that
  -- counts. The others are in several, each with a list of loans. What was lent in a cell counts only if no more was in
  -- a later one.
  function Counter:read_loans()
    local h, loans, several = self.h, {}, {}
    self.loans, self.several = loans, several
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

  -- rights returns S in cell k after e ticks.
  function Counter:rights(k, e)
    local h = self.h
    if k * h.length + e * h.tick < closed(h) then return 0 end
    if not self.loans then self:read_loans() end
    local loans, sum, weights = self.loans, (h.entitlement + borrowed(h, k)) * h.ticks, {}
    for cell in pairs(h.cells) do
      weights[cell] = weight(h, cell, k, e)
      sum = sum - (loans[cell] or 0) * weights[cell]
    end
    for _, list in ipairs(self.several) do
      local most = 0
      for _, loan in ipairs(list) do
        local missing = loan.out * (weights[loan.cell] or 0)
        if missing > most then most = missing end
      end
      sum = sum - most
    end
    return sum
  end

  -- share returns S in cell k after e ticks, worked out once: it does not change while requests are decided.
  function Counter:share(k, e)
    local h, shares = self.h, self.shares
    if not shares then return h.entitlement * h.ticks end
    local of = shares[k] or {}
    shares[k] = of
    of[e] = of[e] or self:rights(k, e)
    return of[e]
  end

  -- estimate returns what counts as used in cell k after e ticks if nothing more is admitted.
  function Counter:estimate(k, e)
    local h = self.h
    local ticks = h.ticks
    if k == h.cell then return self.used * ticks + self.before * (ticks - e) end
    if k == h.cell + 1 then return self.used * (ticks - e) end
    return 0
  end

  -- rest returns what is left of S in cell k after e ticks, or of a part of its whole units.
  function Counter:rest(k, e, part)
    local share = self:share(k, e)
    if part < WHOLE then share = portion(floor_div(share, self.h.ticks), part) * self.h.ticks end
    return share - self:estimate(k, e)
  end

  -- What is used counts until the next cell ends, what was used in the cell before until this one does.
  function Counter:state()
    local h, before, fading, reset = self.h, self.before, 0, 0
    if before > 0 then fading, reset = floor_div(before * (h.ticks - elapsed(h)), h.ticks), h.ends end
    if self.used > 0 then reset = h.ends + h.length end
    if not self.shares then return h.entitlement, h.entitlement, self.used + self.over, fading, reset end
    return floor_div(self:share(h.cell, elapsed(h)), h.ticks), floor_div(self:share(h.cell + 1, 0), h.ticks),
      self.used + self.over, fading, reset
  end

  function Counter:free()
    local left = self.left
    if left > 0 then return left end
    return 0
  end

  function Counter:fits(cost, part)
    if part >= WHOLE then return cost <= self.left end
    return cost * self.h.ticks <= self:rest(self.h.cell, elapsed(self.h), part)
  end

  -- narrow tells the ticks at which a loan begins to fade in cell k, or has faded, and returns between which of them
  -- there is enough room for the first time.
  function Counter:narrow(k, lo, hi, need, part)
    local h = self.h
    for cell in pairs(h.cells) do
      local gone = h.ticks - floor_div((k - 1 - cell) * h.length - h.guard, h.tick)
      for _, e in ipairs(cell < k and {gone - h.ticks, gone} or nobody) do
        if e > lo and e < hi then
          if self:rest(k, e, part) >= need then hi = e else lo = e end
        end
      end
    end
    return lo, hi
  end

  -- reaches returns the first tick of cell k, after one of too little room up to one of enough, at which there is as
  -- much as is needed. Within a cell only time passes, so the room only grows. Each try is where it would be enough if
  -- it grew in proportion between the two; the end that stayed twice counts half as far off, and each fifth try is in
  -- the middle.
  function Counter:reaches(k, lo, hi, need, part)
    lo, hi = self:narrow(k, lo, hi, need, part)
    local lack, more, stayed, try = need - self:rest(k, lo, part), self:rest(k, hi, part) - need, 0, 0
    while hi - lo > 1 do
      local mid = lo + math.ceil(lack / (lack + more) * (hi - lo))
      try = try + 1
      if try % 5 == 0 then mid = floor_div(lo + hi, 2) end
      mid = math.min(math.max(mid, lo + 1), hi - 1)
      local there = self:rest(k, mid, part) - need
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

  function Counter:retry(cost, part)
    local h = self.h
    local last, settled = floor_div(h.length - 1, h.tick), math.max(weighs(h, h.last), closed(h))
    local k, lo, need = h.cell, elapsed(h), cost * h.ticks
    while true do
      if need <= self:rest(k, last, part) then
        local at = lo
        if self:rest(k, lo, part) < need then at = self:reaches(k, lo, last, need, part) end
        return k * h.length + at * h.tick - h.now
      end
      if k > h.cell + 1 and k * h.length >= settled then return -1 end
      k, lo = k + 1, 0
    end
  end

  function Counter:take(cost)
    self.used, self.left, self.dirty = self.used + cost, self.left - cost, true
    return 0
  end

  -- charge counts as much as can be counted in ticks.
  function Counter:charge(cost) self:take(math.min(cost, math.max(floor_div(MAX, self.h.ticks) - self.used, 0))) end

  -- slack returns what is left of S now, beyond kept units.
  function Counter:slack(kept)
    local h = self.h
    return self:rest(h.cell, elapsed(h), WHOLE) - math.min(kept, h.entitlement + borrowed(h, h.cell)) * h.ticks
  end

  function Counter:spare(kept) return floor_div(self:slack(kept), self.h.ticks) end

  -- Lending within what is missing because of the peer anyhow costs nothing. Rights of the next cell must be free in
  -- this one already, and the kept ones are those of the next.
  function Counter:room(cell, peer, kept)
    if self:slack(0) < 0 then return 0 end
    local h = self.h
    local ticks, row = h.ticks, row_of(h, cell, peer)
    local out = row.l - row.g
    local function more(k, e, left)
      return floor_div(math.max(out * ticks, missing(h, peer, k, e, cell)) + left, ticks) - out
    end
    if cell == h.cell then return more(cell, elapsed(h), self:slack(kept)) end
    kept = math.min(kept, h.entitlement + borrowed(h, cell))
    return math.min(more(h.cell, elapsed(h), self:slack(0)), more(cell, 0, self:share(cell, 0) - kept * ticks))
  end

  -- use changes what was used in this cell and in the one before.
  function Counter:use(used, before)
    self.changed = self.changed or before ~= self.before
    self.used, self.before, self.dirty = used, before, true
    self:count()
  end

  function Counter:refund(_, cell, units)
    local used, before = self.used, self.before
    if cell == self.h.cell then
      units = math.min(units, used - self.hidden)
      used = used - units
    elseif cell == self.h.cell - 1 then
      units = math.min(units, before - self.hidden_before)
      before = before - units
    else
      return 0, NO_LONGER_WEIGHS
    end
    self:use(used, before)
    return units, NOT_REFUSED
  end

  function Counter:book(cell, units)
    local h, used, before = self.h, self.used, self.before
    if cell == h.cell then used = used + units end
    if cell == h.cell - 1 then before = before + units end
    self:use(used, before)
    return cell <= h.cell
  end

  -- What counted at a time counts as used in its cell: it fades later than it did, never sooner.
  function Counter:restore(cell, units)
    local h, used, before = self.h, self.used, self.before
    if cell == h.cell then used = math.max(used, units) end
    if cell == h.cell - 1 then before = math.max(before, units) end
    self:use(used, before)
  end

  function Counter:known()
    local h = self.h
    if h.cell == floor_div(h.whole, h.length) then return self.used - self.hidden end
    return self.before - self.hidden_before
  end

  function Counter:reset()
    self.hidden, self.hidden_before = 0, 0
    self:use(0, 0)
  end

  function Counter:save()
    if not self.dirty then return end
    local h, used = self.h, self.used - self.hidden
    if self.current and not self.changed then
      redis.call('HSET', h.key, 'u', int(used))
      return
    end
    redis.call('HSET', h.key, 'c', h.cell_text, 'u', int(used), 'p', int(self.before - self.hidden_before))
    if not self.current then keep(h) end
  end

  return Counter
end
