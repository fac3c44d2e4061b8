-- What token_bucket and leaky_bucket share: rights that are a rate, S[k] units a window in cell k, and time in ticks.
-- Work is units times the ticks of a window, so that a tick at S does exactly S, and no remainder is ever lost.
-- Fields of both: v the level, a the tick it is of, m a mark, t the length of a tick, w until when it is kept (us; versions
-- of before wrote a cell, which is less), e the entitlement under which these were written.
local REFUNDABLE = 86400000000 -- us for which at most a charge of a bucket can be refunded

-- rate_class returns a new class with what both share. Its objects have the held bucket h, level, at and mark as they
-- are now, stood (the mark in the store if t, w and e are there as they would be written, else false), and dirty.
local function rate_class()
  local Rate = {}
  Rate.__index = Rate

  -- last_of returns the last cell whose share may not be the entitlement, below 0 if there is none.
  local function last_of(h)
    if h.lost_at > 0 then return math.max(h.last, floor_div(h.lost_at, h.length) + 1) end
    return h.last
  end

  local function share_of(h, cell, last)
    if cell > last then return h.entitlement end
    return math.max(rights(h, cell), 0)
  end

  function Rate:share(cell) return share_of(self.h, cell, last_of(self.h)) end

  -- shares returns the shares of this cell and of the next.
  function Rate:shares()
    local h = self.h
    if h.last < 0 and h.lost_at == 0 then return h.entitlement, h.entitlement end
    return self:share(h.cell), self:share(h.cell + 1)
  end

  -- stretch returns the cell of a tick, where it ends (nil: it and all after it have one rate) and its share.
  function Rate:stretch(from)
    local h = self.h
    local last = last_of(h)
    local cell = floor_div(from, h.cell_ticks)
    local to = nil
    if cell <= last then to = (cell + 1) * h.cell_ticks end
    return cell, to, share_of(h, cell, last)
  end

  -- after returns the tick at which the work is done that begins at tick from, or -1 if it never is.
  function Rate:after(from, work)
    local h = self.h
    if h.last < 0 and h.lost_at == 0 then -- one rate for ever
      if work <= 0 then return from end
      local share = h.entitlement
      if share <= 0 then return -1 end
      work = work + share - 1
      return from + (work - work % share) / share
    end
    while work > 0 do
      local _, to, share = self:stretch(from)
      if share > 0 and (not to or work <= share * (to - from)) then return from + ceil_div(work, share) end
      if not to then return -1 end
      work, from = work - share * (to - from), to
    end
    return from
  end

  -- wait returns after how many us a tick begins.
  function Rate:wait(tick)
    local wait = tick * self.h.tick - self.h.now
    return wait > 0 and wait or 0
  end

  -- forgotten returns after how many us the store has forgotten the bucket, and what was booked of this window, at the
  -- latest. Only that makes a bucket whole which has no rate: its entitlement became 0.
  function Rate:forgotten()
    local h = self.h
    local ends = math.max(h.useful, h.till, (floor_div(h.now, h.window) + 2) * h.window + h.guard)
    return ends + (SLACK + 1) * 1000 - h.now
  end

  -- read returns level, tick and mark as they were last written, nil if that says nothing, what stood is, and the
  -- entitlement that they were written under, if that was another. Another limit may have changed the length of a tick:
  -- each is then converted, and rounded against the caller by the function given.
  function Rate.read(h, round)
    local v = fields(h, 'v', 'a', 'm', 't', 'w', 'e')
    read_rows(h, v[1])
    h.absent = not v[1] and not v[3]
    if not h.this_tick then count_ticks(getmetatable(h)) end
    h.till = tonumber(v[6] or 0)
    if h.till >= h.useful then h.kept = h.cell end
    if not v[3] then return nil, nil, nil, false end
    local level, at, mark, stood = tonumber(v[2]), tonumber(v[3]), tonumber(v[4]), false
    if v[5] == h.tick_text then
      if v[6] == h.useful_text and v[7] == h.rate_text then stood = mark end
    else
      local tick = tonumber(v[5])
      if tick < h.tick then
        level, at, mark = round(level, h.tick / tick), ceil_div(at, h.tick / tick), ceil_div(mark, h.tick / tick)
      elseif tick > h.tick then
        local finer = tick / h.tick
        local most = floor_div(MAX, finer)
        level, at, mark = math.max(math.min(level, most), -most) * finer, at * finer, mark * finer
      end
    end
    if at * h.tick < h.lost_at then return nil, nil, nil, false end
    return level, at, mark, stood, v[7] and v[7] ~= h.rate_text and tonumber(v[7])
  end

  -- catch_up brings a new object up to now with the function given. What has passed since it was written counts at the
  -- lower of the entitlements of then and now.
  function Rate:catch_up(before, up)
    local h = self.h
    if not before or before >= h.entitlement then return up(self) end
    local now = h.entitlement
    h.entitlement = before
    up(self)
    h.entitlement = now
  end

  -- text_of writes a tick; that of now is written once a limit.
  local function text_of(h, tick)
    if tick ~= h.this_tick and tick ~= h.next_tick then return int(tick) end
    local text = h.tick_texts[tick]
    if not text then
      text = int(tick)
      h.tick_texts[tick] = text
    end
    return text
  end

  -- save writes what is not in the store as it is.
  function Rate:save()
    if not self.dirty then return end
    local h = self.h
    local level, at = int(self.level), text_of(h, self.at)
    if self.stood == self.mark then
      redis.call('HSET', h.key, 'v', level, 'a', at)
    elseif self.stood then
      redis.call('HSET', h.key, 'v', level, 'a', at, 'm', text_of(h, self.mark))
    else
      redis.call('HSET', h.key, 'v', level, 'a', at, 'm', text_of(h, self.mark), 't', h.tick_text, 'w',
        h.till > h.useful and int(h.till) or h.useful_text, 'e', h.rate_text)
      keep(h, false, nil, true)
    end
  end

  return Rate
end
