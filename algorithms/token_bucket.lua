-- token_bucket: admit when there are as many tokens as the cost. The level (a numerator over the ticks of a window) is
-- settled cell by cell, each with that cell's own share and capacity. The mark is the tick at which refill was last
-- lost to a full bucket.
kinds.token_bucket = function()
  local Tokens = rate_class()

  function Tokens.open(h)
    local level, at, mark, stood, before = Tokens.read(h, floor_div)
    local since = at ~= nil -- the level follows from what was written before
    local s = setmetatable({h = h, level = level, at = at, mark = mark, stood = stood, dirty = false,
      since = since}, Tokens)
    if not since then
      if h.lost_at > 0 then -- what it held before the loss is not known: it begins empty
        s.at = floor_div(closed(h), h.tick)
        s.level, s.mark = 0, s.at
      else
        s:make_full(s:full(h.cell))
      end
    end
    s:catch_up(before, Tokens.refill)
    s.dirty = before and s.level < s:full(h.cell) -- so that what comes counts at the entitlement of now
    return s
  end

  function Tokens:capacity(cell)
    local h = self.h
    local sum = h.cells[cell]
    return sum and h.burst + sum.z - sum.y or h.burst
  end

  -- full returns the level of a full bucket.
  function Tokens:full(cell)
    local h = self.h
    if h.cells == nobody then return h.full end
    return self:capacity(cell) * h.ticks
  end

  -- make_full: from now on refill counts, which is not before the next tick if this one has begun.
  function Tokens:make_full(full)
    self.level, self.at, self.mark = full, self.h.next_tick, self.h.this_tick
  end

  function Tokens:clip()
    local full = self:full(self.h.cell)
    if self.level > full then self:make_full(full) end
    return full
  end

  -- refill brings the level up to now.
  function Tokens:refill()
    local h = self.h
    local level, from, now, one_rate = self.level, self.at, h.this_tick, h.last < 0 and h.lost_at == 0
    if from < now then
      local mark = self.mark
      while from < now do
        local to, full, share = now, h.full, h.entitlement
        if not one_rate then
          local cell, ends
          cell, ends, share = self:stretch(from)
          if ends and ends < now then to = ends end
          full = self:full(cell)
        end
        level = level + share * (to - from) -- which may not be exact only where it is more than full
        if level > full then level, mark = full, to end
        from = to
      end
      self.level, self.at, self.mark = level, now, mark
    end
    local full = self:clip()
    if level >= full and self.at < h.next_tick then self.at = h.next_tick end -- until now it was full
  end

  -- tokens returns the whole ones, below zero after a booking.
  function Tokens:tokens()
    local level, ticks = self.level, self.h.ticks
    return (level - level % ticks) / ticks
  end

  -- whole returns the rights that the region has of a cell, those that are assigned with them.
  function Tokens:whole(cell)
    local h = self.h
    if not is_open(h, cell) then return 0 end
    return math.max(rights(h, cell) + assigned(h, cell), 0)
  end

  function Tokens:free()
    local tokens = self:tokens()
    return tokens > 0 and tokens or 0
  end

  function Tokens:state()
    local share, next_share = self:shares()
    if self.h.last >= 0 then share, next_share = self:whole(self.h.cell), self:whole(self.h.cell + 1) end
    return share, next_share, self:capacity(self.h.cell) - self:tokens(), 0, self:reset_after()
  end

  -- reset_after follows the level until the bucket is full, of what it holds in the cell of that moment.
  function Tokens:reset_after()
    local h, level, from = self.h, self.level, self.at
    if level >= self:full(h.cell) then return 0 end
    if h.last < 0 and h.lost_at == 0 and h.entitlement > 0 then -- one rate for ever
      return self:wait(from + ceil_div(h.full - level, h.entitlement))
    end
    while true do
      local cell, to, share = self:stretch(from)
      local full = self:full(cell)
      if level >= full then return self:wait(from) end
      if share > 0 then
        local found = from + ceil_div(full - level, share)
        if not to or found < to then return self:wait(found) end
      end
      if not to then return self:forgotten() end
      level, from = math.min(level + share * (to - from), full), to
    end
  end

  -- withheld returns how many tokens a request of a part may not use in a cell.
  function Tokens:withheld(cell, part)
    if part >= WHOLE then return 0 end
    local full = self:capacity(cell)
    return full - portion(full, part)
  end

  function Tokens:fits(cost, part)
    local h = self.h
    return (cost + self:withheld(h.cell, part)) * h.ticks <= self.level and (h.lost_at == 0 or is_open(h, h.cell))
  end

  -- retry follows the level until it is as high as the cost.
  function Tokens:retry(cost, part)
    local h, have, from = self.h, self.level, self.at
    while true do
      local cell, to, share = self:stretch(from)
      local full = self:capacity(cell)
      have = math.min(have, full * h.ticks)
      local least = cost + self:withheld(cell, part)
      if least <= full and is_open(h, cell) then
        local lack = math.max(least * h.ticks - have, 0)
        local found = from + ceil_div(lack, math.max(share, 1))
        if (lack == 0 or share > 0) and (not to or found < to) then return self:wait(found) end
      end
      if not to then return -1 end
      have, from = math.min(have + share * (to - from), full * h.ticks), to
    end
  end

  function Tokens:take(cost)
    self.level, self.dirty = self.level - cost * self.h.ticks, true
    return 0
  end

  function Tokens:charge(cost, most)
    most = math.min(most, floor_div(MAX, self.h.ticks))
    self:take(math.min(cost, math.max(self:tokens() + most, 0)))
  end

  -- owes says whether the level is below zero. Then the rate is needed here: it is not lent.
  function Tokens:owes() return self.level < 0 end

  function Tokens:spare(kept) return self:owes() and 0 or self:share(self.h.cell) - kept end

  function Tokens:room(cell, _, kept) return self:owes() and 0 or self:share(cell) - kept end

  function Tokens:room_burst(kept)
    if not is_open(self.h, self.h.cell) then return 0 end
    return self:tokens() - kept
  end

  function Tokens:settle(tokens) self.level, self.dirty = self.level + tokens * self.h.ticks, true end

  function Tokens:refund(time, _, units, newest)
    local h = self.h
    if not newest and (not self.since or floor_div(time, h.tick) < self.mark or
        h.now >= time + math.min(fill(h), REFUNDABLE)) then
      return 0, NO_LONGER_WEIGHS
    end
    local before = self:tokens()
    units = math.min(units, floor_div(self:full(h.cell), h.ticks))
    self.level, self.dirty = self.level + units * h.ticks, true
    self:clip()
    return math.min(units, self:tokens() - before), NOT_REFUSED
  end

  function Tokens:book(_, units)
    self:charge(units, MAX)
    return true
  end

  function Tokens:reset()
    self:make_full(self:full(self.h.cell))
    self.dirty = true
  end

  -- save also keeps a bucket that owes until it is full.
  local save = Tokens.save
  function Tokens:save()
    save(self)
    local h = self.h
    if self.dirty and self:owes() and h.entitlement > 0 then keep(h, false, h.now + self:reset_after()) end
  end

  return Tokens
end
