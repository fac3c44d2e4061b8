-- fixed_window: admit when used[k] + cost <= S[k]. Fields: c the cell that u counts, u units used in it.
kinds.fixed_window = function()
  local Window = {room_burst = zero, settle = zero}
  Window.__index = Window

  function Window.open(h)
    local v = fields(h, 'c', 'u')
    local counted = v[2]
    if h.begins then
      -- A node with other rules of the time zone may have begun the next period already: c only rises.
      local c = tonumber(counted or -1)
      if c == h.cell + 1 then h.cell, h.cell_text, h.ends = c, counted, opens(h, c + 1) - h.now end
      h.moves = c < h.cell
    end
    read_rows(h, v[1])
    h.absent = not v[1] and not counted
    if counted then h.kept = math.max(h.kept, tonumber(counted)) end
    local current = counted == h.cell_text
    local hidden = untold_until(h) > h.now and untold(h) or 0
    return setmetatable({h = h, share = rights(h, h.cell), used = (current and tonumber(v[3]) or 0) + hidden, hidden = hidden,
      current = current, dirty = false, retries = false}, Window)
  end

  -- Whole is the bucket when the cell ends. What is assigned is a part of the rights, and counts as used.
  function Window:state()
    local h, held = self.h, assigned(self.h, self.h.cell)
    local used = self.used + held
    return self.share + held, rights(h, h.cell + 1) + assigned(h, h.cell + 1), used, 0, used > 0 and h.ends or 0
  end

  function Window:free() return math.max(self.share - self.used, 0) end

  function Window:fits(cost, part) return cost <= portion(self.share, part) - self.used end

  function Window:retry(cost, part)
    local h = self.h
    local cell = h.cell + 1
    while true do
      if is_open(h, cell) then
        if cost <= portion(rights(h, cell), part) then return opens(h, cell) - h.now end
        if cell > h.last then return -1 end
      end
      cell = cell + 1
    end
  end

  function Window:take(cost)
    self.used, self.dirty = self.used + cost, true
    return 0
  end

  function Window:charge(cost) self:take(math.min(cost, MAX - self.used)) end

  function Window:spare(kept) return self.share - self.used - kept end

  function Window:room(cell, _, kept)
    if cell == self.h.cell then return self:spare(kept) end
    return rights(self.h, cell) - kept
  end

  function Window:refund(_, cell, units)
    if cell ~= self.h.cell then return 0, NO_LONGER_WEIGHS end
    units = math.min(units, self.used - self.hidden)
    self.used, self.dirty = self.used - units, true
    return units, NOT_REFUSED
  end

  function Window:book(cell, units)
    if cell == self.h.cell then self:take(units) end
    return cell <= self.h.cell
  end

  function Window:restore(cell, units)
    if cell == self.h.cell then self.used, self.dirty = math.max(self.used, units), true end
  end

  function Window:known() return self.used - self.hidden end

  function Window:reset() self.used, self.hidden, self.dirty = 0, 0, true end

  function Window:save()
    if not self.dirty then return end
    redis.call('HSET', self.h.key, 'c', self.h.cell_text, 'u', int(self.used - self.hidden))
    self.h.moves = false
    if not self.current then keep(self.h) end
  end

  return Window
end
